"""Training on the page: tables as builders publish them, bars against the card's own product,
digests, efficiencies; and the capacity card.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import drawn
import gpu_machine
import journals
import msgspec
import pages
import sample_training
import samples
from cases import each
from known import known
from msgspec.structs import replace
from runs import unpacked
from test_page import assert_inert

from acceptance.core.evidence import Table
from acceptance.core.language import ENGLISH
from acceptance.core.limit import Limit
from acceptance.core.parts import GPUS, Component, Gpu
from acceptance.core.record import Body, CheckEnded, Measured
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.loads.train import digest_contract, parallel_contract
from acceptance.loads.train.layer_contract import LAYER_COLUMNS
from acceptance.loads.train.step_contract import STEP_COLUMNS
from acceptance.reports import languages, report
from acceptance.reports.page import render, training
from acceptance.reports.page.training import PUBLISHED

TRAINED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h100/runs/2xh100-host-train"
Row = tuple[float | str, ...]
LAYER: Row = ("BERT-large layer", "bfloat16", 512.0, 8.0, 464.0, 436.0, 0.66)
STEP: Row = (
    "GPT-2 medium",
    "fused",
    16.0,
    1.0,
    151.0,
    154.7,
    400.0,
    0.4,
    29.2,
    106.0,
    105.0,
    108.0,
)
DIGEST: Row = ("bfloat16", 50.0, 3.0, "aa", "bb", "cc", 5.8)


def layers(*rows: Row, gpu: Component = Gpu(0), more: tuple[str, ...] = ()) -> Table:
    return Table("train.layers", gpu, "train_layers", (*LAYER_COLUMNS, *more), rows)


def digests(*rows: Row, gpu: Component = Gpu(0)) -> Table:
    return Table("train.digest", gpu, "train_digests", digest_contract.COLUMNS, rows)


def parallel(*rows: Row) -> Table:
    return Table("train.parallel", GPUS, "train_parallel", parallel_contract.COLUMNS, rows)


def way(arm: float | str, name: float | str, times: float | str, one: float | str) -> Row:
    return (arm, name, times, 10.0, 30.0, 70.0, one, 21.4, 300.0, 0.8, 0.1, 0.1)


def grids(*tables: Table) -> list[report.Table]:
    return list(training.grids(tables, ENGLISH))


# --- tables ---


def test_a_table_for_each_layer() -> None:
    other = ("gpt2", *LAYER[1:])  # as the load says it
    first, second = grids(layers(LAYER, (*LAYER[:3], 16.0, *LAYER[4:]), other))
    assert (first.title, second.title) == ("BERT-large layer", "GPT-2 medium block")
    assert first.head == LAYER_COLUMNS[1:]
    assert drawn.cells(first) == [
        ("bfloat16", "512", "8", "464", "436", "0.66"),
        ("bfloat16", "512", "16", "464", "436", "0.66"),
    ]
    assert list(first.numbers) == [3, 4, 5]
    slow = layers((*LAYER[:4], 460.5, 436.0, 0.655), gpu=Gpu(1))
    (grid,) = grids(layers(LAYER), slow)  # several GPUs are a range
    assert drawn.cells(grid) == [("bfloat16", "512", "8", "460.5 .. 464", "436", "0.655 .. 0.66")]
    rows = [(*LAYER[:3], float(n), *LAYER[4:]) for n in range(70)]
    many = grids(layers(*rows, *((f"layer {n}", *LAYER[1:]) for n in range(30))))
    assert (len(many[0].rows), many[0].most, len(many)) == (70, 60, 16), "long ones are cut"


def test_a_published_figure_stands_beside() -> None:
    told = layers((*LAYER, 440.0), (*LAYER[:3], 4.0, *LAYER[4:], ""), more=(PUBLISHED,))
    (grid,) = grids(told, layers(LAYER, gpu=Gpu(1)))
    assert grid.head[-1] == PUBLISHED
    assert [row[-1] for row in drawn.cells(grid)] == ["", "440"]  # by batch
    mixed = layers((*LAYER, "n/a"), more=(PUBLISHED,))
    (grid,) = grids(mixed, layers((*LAYER, 5.0), gpu=Gpu(1), more=(PUBLISHED,)))
    assert drawn.cells(grid)[0][-1] == "n/a, 5"


def test_steps_and_parallel_training() -> None:
    steps = Table("train.step", Gpu(0), "train_steps", STEP_COLUMNS, (STEP,))
    first, second = grids(steps, parallel(way("default", "ddp", 1.0, 0.9)))
    assert (first.title, first.head) == ("GPT-2 medium", STEP_COLUMNS[1:])
    assert drawn.cells(first)[0][:3] == ("fused", "16", "1")
    assert (second.title, second.head, min(second.numbers)) == (
        "Parallel training",
        parallel_contract.COLUMNS,
        3,
    )


ODD: Sequence[Row] = (
    (*LAYER[:4], nan, 1.0, 1.0),
    (*LAYER[:4], 1.0, inf, 1.0),
    (*LAYER[:4], 1.0, 1e300, 1.0),
    LAYER[:-1],
    (),
)


def test_rows_that_are_none_are_left_out() -> None:
    assert grids(layers(*ODD)) == []
    assert grids(parallel(*ODD)) == []
    (grid,) = grids(layers(*ODD, LAYER))
    assert len(grid.rows) == 1


@each(
    "table, known",
    [
        (layers(LAYER), True),
        (layers(more=(PUBLISHED,)), True),
        (layers(more=("another",)), False),
        (Table("c", Gpu(0), "train_layers", LAYER_COLUMNS[1:], ()), False),
        (Table("c", Gpu(0), "gemm", LAYER_COLUMNS, ()), False),
    ],
)
def test_only_tables_that_are_known_are_drawn(table: Table, known: bool) -> None:
    assert training.is_drawn(table) is known


# --- rates against the product ---

FLOOR = Limit("TFLOP/s", "a basis", low=440.0)


def measured(values: dict[tuple[str, Component], float], unit: str = "TFLOP/s") -> Run:
    dues = [
        journals.due(name, where, unit, FLOOR if name == "layer_bert" else None)
        for name, where in values
    ]
    bodies: list[Body] = []
    for body in journals.bodies(journals.plan(journals.check("train.layers", *dues))):
        changed = body
        if isinstance(body, Measured):
            changed = replace(body, value=values[body.measurement, body.component])
        if isinstance(body, CheckEnded) and values.get(("layer_bert", Gpu(0)), 500) < 440:
            changed = replace(body, outcome="fail", message="slow")
        bodies.append(changed)
    return samples.run(bodies)


def test_bars_are_shares_of_the_cards_own_product() -> None:
    run = measured(
        {
            ("layer_matmul", Gpu(0)): 660.0,
            ("layer_matmul", Gpu(1)): 650.0,
            ("layer_bert", Gpu(0)): 436.0,
            ("layer_bert", Gpu(1)): 441.0,
            ("layer_dense", Gpu(0)): 700.0,
            ("step_gpt2", Gpu(0)): 400.0,
        }
    )
    bert, dense = training.rates(run)
    assert (bert.name, bert.gpu, bert.value, bert.share) == (
        "layer_bert",
        "gpu0",
        "436 TFLOP/s",
        "0.661",
    )
    assert (bert.width, bert.product, bert.mark) == (66.1, 100.0, "fail")
    assert (dense.width, dense.product) == (100.0, 94.3)
    in_another_unit = measured(
        {("layer_matmul", Gpu(0)): 660.0, ("layer_bert", Gpu(0)): 436.0}, "count"
    )
    for other in (in_another_unit, measured({("layer_matmul", Gpu(0)): -1.0})):
        assert list(training.rates(other)) == []


# --- parallel training ---


def test_efficiencies_are_bars_by_arm_way_and_accumulation() -> None:
    rows = (
        way("default", "zero2", 4.0, 0.97),
        way("default", "ddp", 4.0, 1.5),
        way("default", "ddp", 1.0, 0.9),
        way("p2p_off", "ddp", 1.0, 0.6),
    )
    found = known(training.parallel([parallel(*rows), layers(LAYER)], ENGLISH))
    assert (found.ways, found.width) == (("ddp", "zero2"), 200)
    first, second = found.arms
    assert (first.name, first.least, first.most) == ("as the machine comes", "0.9", "1.5")
    assert [(bar.x, bar.y, bar.accumulated) for bar in first.bars] == [
        (14, 25.0, False),
        (52, 0.0, True),
        (114, 19.2, True),
    ]
    assert first.bars[0].title == "ddp, 1 accumulated: 0.9"
    assert (second.name, [bar.y for bar in second.bars]) == ("P2P off", [50.0])
    many = parallel(*(way(f"arm {n}", "tp", 1.0, 0.9) for n in range(9)))
    assert [arm.name for arm in known(training.parallel([many], ENGLISH)).arms] == [
        "arm 0",
        "arm 1",
    ]


@each(
    "row",
    [
        way(1.0, "ddp", 1.0, 0.9),
        way("default", "pipeline", 1.0, 0.9),
        way("default", "ddp", "1", 0.9),
        way("default", "ddp", 1.0, "0.9"),
        way("default", "ddp", 1.0, -1.0),
        way("default", "ddp", 1.0, nan),
    ],
)
def test_what_is_no_efficiency_is_not_drawn(row: Row) -> None:
    assert training.parallel([parallel(row)], ENGLISH) is None


# --- digests ---


ODD_BITS = (*DIGEST[:3], "aa", "b2", "c2", 5.9)
OTHERS = (("tf32", *DIGEST[1:5], "dd", 1.0), ("bfloat16", 20.0, *DIGEST[2:5], "ee", 1.0))


@each(
    "tables, texts, bad",
    [
        ([digests(DIGEST)], ["bfloat16, 50 steps: gpu0 ended in weights cc"], False),
        (
            [digests(DIGEST), digests(DIGEST, gpu=Gpu(1))],
            ["bfloat16, 50 steps: gpu0, gpu1 ended in the same bits, weights cc"],
            False,
        ),
        (
            [digests(DIGEST), digests(DIGEST, gpu=Gpu(1)), digests(ODD_BITS, gpu=Gpu(2))],
            [
                "bfloat16, 50 steps: the GPUs differ in gradients, weights; weights of "
                "gpu0, gpu1: cc; gpu2: c2"
            ],
            True,
        ),
        (
            [digests(DIGEST, *OTHERS), layers(LAYER)],
            [
                "bfloat16, 50 steps: gpu0 ended in weights cc",
                "tf32, 50 steps: gpu0 ended in weights dd",
                "bfloat16, 20 steps: gpu0 ended in weights ee",
            ],
            False,
        ),
    ],
    told=["alone", "the same", "another", "other formats and lengths are not compared"],
)
def test_digests_are_compared(tables: list[Table], texts: list[str], bad: bool) -> None:
    found = training.digests(tables, ENGLISH)
    assert [(one.text, one.bad) for one in found] == [(text, bad) for text in texts]


# --- the page ---


def page_of(*tables: Body) -> Run:
    run = measured({("layer_matmul", Gpu(0)): 660.0, ("layer_bert", Gpu(0)): 450.0})
    bodies = [one.body for one in run.entries]
    seen = gpu_machine.machine(gpu_machine.device(0), gpu_machine.device(1))
    found = samples.run([*bodies[:3], *tables, *bodies[3:]])
    return samples.seen(found, msgspec.to_builtins(seen))


def every_table() -> list[Table]:
    return [
        table
        for check in sample_training.MEASURED
        for table in sample_training.tables(check, (Gpu(0), Gpu(1)))
    ]


def test_it_is_on_the_page_and_not_among_the_tables() -> None:
    shown = render.render(page_of(*every_table()))
    assert_inert(shown)
    tree = pages.page(shown)
    section, capacity = (
        tree.get_element_by_id(name).getparent() for name in ("training", "capacity")
    )
    labels = section.xpath(".//svg/@aria-label")
    assert [label.partition(":")[0] for label in labels] == ["as the machine comes", "P2P off"]
    assert [pages.words(one) for one in section.iter("caption")][1:] == [
        "BERT-large layer",
        "GPT-2 medium block",
        "T5-large encoder layer",
        "BERT-large",
        "GPT-2 medium",
        "Parallel training",
    ]
    assert "ended in the same bits" in pages.words(section)
    assert not tree.xpath("//*[@id='tables']")
    told = pages.words(capacity)
    assert "2 x NVIDIA GeForce RTX 4090" in told
    assert "measured: layer_matmul of gpu0" in told
    assert "rigproof capacity RUN --parameters 13B" in told
    stages = [pages.words(one) for one in capacity.xpath(".//tbody/tr/th")]
    assert stages == ["none", "ZeRO-1", "ZeRO-2", "ZeRO-3"]
    chinese = render.render(page_of(*every_table()), language=languages.language("zh-CN"))
    for name, text in (("training", "并行训练相对于单块 GPU 的效率"), ("capacity", "训练天数")):
        assert text in pages.words(pages.page(chinese).get_element_by_id(name).getparent())


def test_what_is_not_known_has_no_section() -> None:
    shown = render.render(page_of(layers((*LAYER, 1.0), more=("another",))))
    tables = pages.page(shown).get_element_by_id("tables").getparent()
    assert "train_layers" in pages.words(tables), "of another version"
    bare = samples.run(journals.bodies(journals.plan()))
    for run in (bare, samples.seen(bare, msgspec.to_builtins(gpu_machine.machine()))):
        tree = pages.page(render.render(run))
        assert not tree.xpath("//*[@id='training' or @id='capacity']")


def test_a_recorded_training_is_on_the_page(tmp_path: Path) -> None:
    tree = pages.page(render.render(journal_run.read(unpacked(TRAINED, tmp_path / "run"))))
    section = tree.get_element_by_id("training").getparent()
    rows = {
        pages.words(one): len(one.getparent().xpath(".//tbody/tr"))
        for one in section.iter("caption")
    }
    models = ["GPT-2 medium", "BERT-large", "GPT-Neo-1.3B", "Parallel training"]
    assert [rows[name] for name in models] == [7, 7, 7, 20]
    layers = {name: count for name, count in list(rows.items())[1:] if name not in models}
    assert list(layers.values()) == [56, 48, 28, 28, 16]
    labels = section.xpath(".//svg/@aria-label")
    assert labels[0].startswith("as the machine comes: ddp, 1 accumulated: 0.9235; ddp, 4 acc")
    assert labels[1].startswith("P2P off: ddp, 1 accumulated: 0.5879; ")
    told = pages.words(section)
    for dtype in ("bf16", "tf32"):
        assert f"{dtype}, 20 steps: gpu0, gpu1 ended in the same bits, weights " in told
    assert "layer_llama gpu0 593 TFLOP/s 0.842" in told
    card = pages.words(tree.get_element_by_id("capacity").getparent())
    assert "2 x NVIDIA H100 80GB HBM3" in card
    assert "measured: step_neo of gpu0, the least of 2" in card


NUMBERS = (nan, inf, -inf, -1.0, 0.0, 1e300, 5e-324)


def with_text(table: Table, text: str) -> Table:
    """The table with this text in its component, check and every cell of text."""
    rows: list[Any] = [
        tuple(text if isinstance(cell, str) and n != 1 else cell for n, cell in enumerate(row))
        for row in table.rows
    ]
    return replace(table, check=text, rows=tuple(rows))


@each(
    "tables",
    [
        *(
            [with_text(table, text) for table in every_table()]
            for text in (
                "<script>alert(1)</script>",
                '"><img onload=x>',
                "{{ 7 * 7 }}",
                "\x00\x1b[31m",
            )
        ),
        [
            parallel(*(way("default", "ddp", value, value) for value in NUMBERS)),
            layers(*((*LAYER[:4], value, value, value) for value in NUMBERS)),
            digests(*((*DIGEST[:1], *[value] * 6) for value in NUMBERS)),
        ],
    ],
)
def test_hostile_text_and_numbers_are_inert(tables: list[Table]) -> None:
    assert_inert(render.render(page_of(*tables)))
