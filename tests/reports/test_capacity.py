"""The capacity card of runs that measured much, little and nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_changes
from typing import Any

import drawn
import gpu_machine
import journals
import msgspec
import pytest
import samples
from cases import each
from known import known
from msgspec import structs

from acceptance.core.language import ENGLISH, Language
from acceptance.core.parts import GPUS, Component, Gpu, Pair, Part
from acceptance.core.record import Body, Measured
from acceptance.expect import gpu_limits
from acceptance.journal.run import Run
from acceptance.machine.inventory import Inventory
from acceptance.reports import languages
from acceptance.reports.capacity import amounts, figures, report
from acceptance.reports.capacity.card import Card, Line, card
from acceptance.reports.capacity.figures import Figure, Figures, Question, training
from acceptance.reports.report import Report, Section, Table

MEMORY = 80e9
DISK = Part("disk", "nvme0n1")


def figure(value: float, name: str = "x", where: Component = Gpu(0), count: int = 2) -> Figure:
    return Figure(value, name, where, count)


def told(**changed: Any) -> Figures:
    """Two GPUs with everything measured, but for what is changed."""
    whole: dict[str, Any] = {
        "gpus": 2,
        "model": "NVIDIA X",
        "memory": MEMORY,
        "product": figure(600e12, "gemm_bf16"),
        "step": figure(400e12, "step_gpt2"),
        "peak": 1000e12,
        "sheet": "X",
        "efficiencies": {
            "parallel_ddp_efficiency": figure(0.9, "parallel_ddp_efficiency", GPUS, 1),
            "parallel_zero3_efficiency": figure(0.8, "parallel_zero3_efficiency", GPUS, 1),
        },
        "link": figure(300e9, "p2p_write", Pair(Gpu(0), Gpu(1))),
        "peer_access": True,
        "all_reduce": figure(320e9, "collective_all_reduce", GPUS, 1),
        "write": figure(3e9, "storage_write", DISK, 1),
        "checkpoint": figure(6.0, "storage_checkpoint_write", DISK, 1),
        "feed": figure(100e6, "storage_feed_gpu", DISK, 1),
    }
    return Figures(**{**whole, **changed})


NOTHING: Mapping[str, Any] = {
    "memory": None,
    "product": None,
    "step": None,
    "peak": None,
    "sheet": None,
    "efficiencies": {},
    "link": None,
    "peer_access": None,
    "all_reduce": None,
    "write": None,
    "checkpoint": None,
    "feed": None,
    "model": None,
}
FOUR = Question(parameters=4e9, tokens=80e9)
LARGE = Question(parameters=70e9, hidden=8192, layers=80)
SLOW_LINK = told(product=figure(330e12), link=figure(20e9), peer_access=None)
NO_STEP = "needs one of step_neo, step_gpt2, step_bert"
NO_LINK = "needs one of collective_send_receive, p2p_write, copy_own_p2p, p2p_staged"
NO_FEED = "needs one of storage_feed_gpu, storage_feed_host, storage_memmap_cold"
ONE_EACH = Question(machines=2, gpus=1)
STAGES = Question(gpus=8, accumulation=32)
BATCH = Question(parameters=1e9, tokens=4096e3, gpus=1, machines=1, micro=5, accumulation=2)
SLOW_PEERS = told(product=figure(330e12), link=figure(32e9), peer_access=False)


def made(found: Figures, asked: Question = FOUR) -> Card:
    return card(found, asked, ENGLISH)


def line(found: Card, name: str) -> Line:
    return next(one for one in found.lines if one.id == name)


def memory_table(found: Card) -> list[Sequence[str]]:
    parts = report.parts(found, MEMORY, ENGLISH, why=False)
    (table,) = (part for part in parts if isinstance(part, Table))
    assert {len(row.cells) for row in table.rows} == {len(table.head)}
    return [row.cells for row in table.rows]


# --- memory ---


def test_the_table_of_memory() -> None:
    found = made(told(), Question(parameters=4e9, micro=2))
    names, bytes_, most, largest, *_, fits = zip(*memory_table(found), strict=True)
    assert names == ("none", "ZeRO-1", "ZeRO-2", "ZeRO-3")
    assert bytes_ == ("16", "10", "9", "8")
    assert most == ("5 billion", "8 billion", "8.9 billion", "10 billion")
    assert largest[0] == "6.7 billion"
    assert fits == ("with checkpointing", "yes", "yes", "yes")
    assert line(found, "largest_model").value == 10e9
    wide = memory_table(made(told(), Question(parameters=12e9)))
    assert [row[-1] for row in wide] == ["no"] * 4
    alone, unknown = made(told(gpus=1)), made(told(memory=None))
    assert [row.stage for row in alone.memory] == [0], "one GPU shards and exchanges nothing"
    assert {one.id for one in alone.lines}.isdisjoint(
        {"tensor_parallel", "head_on_each", "exchange", "pipeline_bubble"}
    )
    assert (unknown.memory, unknown.machine) == ((), "2 x NVIDIA X")


# --- time ---


def test_days_take_the_efficiency_of_the_runs_gpus() -> None:
    found = line(made(told()), "days")
    seconds = 6 * 4e9 * 80e9 / (2 * 400e12 * 0.9)
    assert found.value == pytest.approx(seconds / 86400)
    assert {one.symbol for one in found.inputs} == {"N", "D", "G", "rate", "e"}
    assert "measured: parallel_ddp_efficiency of gpus" in {one.origin for one in found.inputs}
    bound = made(told(step=None))
    assert line(bound, "days_bound").text.startswith("never less than ")
    assert len(bound.besides) == len(made(told()).besides) + 1, "no step was measured"


@each(
    "found, asked, name, field, told_",
    [
        (SLOW_PEERS, LARGE, "tensor_parallel", "text", "up to 2.383 GPUs"),
        (
            SLOW_PEERS,
            LARGE,
            "head_on_each",
            "text",
            "needs 859.4 GB/s one way, 1719 GB/s both ways; the link has 3.72 % of it",
        ),
        (told(), STAGES, "pipeline_bubble", "assumes", "a formula only"),
        (
            told(link=None, all_reduce=None),
            FOUR,
            "exchange",
            "text",
            "collective_all_reduce, collective_send_receive",
        ),
        (told(feed=figure(1e4, "storage_memmap_cold", DISK, 1)), FOUR, "feed", "text", "does not"),
        (told(), FOUR, "days", "assumes", "attention, which adds"),
    ],
)
def test_what_is_a_formula_or_was_not_measured_says_so(
    found: Figures, asked: Question, name: str, field: str, told_: str
) -> None:
    assert told_ in getattr(line(made(found, asked), name), field)
    link = line(made(SLOW_PEERS, LARGE), "tensor_parallel").inputs[-1]
    assert link.origin.endswith("the least of 2, through host memory: no peer access")


@each(
    "question, way",
    [
        (Question(parameters=4e9, accumulation=1), "parallel_ddp_efficiency"),
        (Question(parameters=4e9), "parallel_ddp_efficiency_accumulated"),
        (Question(parameters=8.2e9, accumulation=1), "parallel_zero2_efficiency"),
        (Question(parameters=9e9, accumulation=1), "parallel_zero3_efficiency"),
        (Question(parameters=900e9, accumulation=1), "parallel_zero3_efficiency"),
    ],
)
def test_the_efficiency_is_that_of_the_way_that_the_model_needs(
    question: Question, way: str
) -> None:
    names = ("ddp", "zero2", "zero3")
    ways = {
        name: figure(0.5, name, GPUS, 1)
        for one in names
        for name in (f"parallel_{one}_efficiency", f"parallel_{one}_efficiency_accumulated")
    }
    found = line(made(told(efficiencies=ways), question), "days")
    assert found.inputs[-1].origin == f"measured: {way} of gpus"


@each(
    "question",
    [
        Question(parameters=4e9, gpus=8),
        Question(parameters=4e9, machines=2),
    ],
)
def test_days_of_other_gpus_than_the_runs_are_a_bound(question: Question) -> None:
    found = line(made(told(), question), "days")
    assert found.text.startswith("at least ")
    assert found.text.endswith("the loss between so many GPUs was not measured")


@each(
    "found, asked, name, text",
    [
        (told(gpus=1), FOUR, "largest_model", "5 billion parameters"),
        (told(memory=None), FOUR, "largest_model", "not shown by the driver: the GPUs' memory"),
        (told(step=None), FOUR, "days", f"not measured in this run: {NO_STEP}"),
        (told(), FOUR, "mfu", "40 %"),
        (told(peak=None, sheet=None), FOUR, "mfu", "no model sheet says this card's peak"),
        (
            SLOW_LINK,
            LARGE,
            "tensor_parallel",
            "none: two GPUs would wait for the link (1.489)",
        ),
        (
            SLOW_LINK,
            LARGE,
            "head_on_each",
            "needs 859.4 GB/s one way, 1719 GB/s both ways; the link has 2.33 % of it",
        ),
        (told(link=None), FOUR, "tensor_parallel", f"not measured in this run: {NO_LINK}"),
        (
            told(link=None),
            FOUR,
            "head_on_each",
            "needs 1562 GB/s one way, 3125 GB/s both ways",
        ),
        (told(), FOUR, "exchange", "0.05 s beside 0.2458 s of each micro-batch"),
        (told(), ONE_EACH, "exchange", "not measured: the network between machines"),
        (told(), STAGES, "pipeline_bubble", "21.9 % of the ideal time, 17.9 % of the whole"),
        (
            told(),
            BATCH,
            "batch",
            "10 samples, 40960 tokens; 100 updates, 200 passes of each GPU in all",
        ),
        (
            told(),
            FOUR,
            "feed",
            "keeps up: 33330 tokens/s are needed, the disk feeds 100 million tokens/s",
        ),
        (told(feed=None), FOUR, "feed", f"not measured in this run: {NO_FEED}"),
        (
            told(),
            FOUR,
            "checkpoint",
            "64 GB in 24 s, 0.667 % of the time between two; without gradients 56 GB in 21 s",
        ),
    ],
)
def test_a_line_says(found: Figures, asked: Question, name: str, text: str) -> None:
    assert line(made(found, asked), name).text == text


@each(
    "found, asked, name, value",
    [
        (told(memory=None), FOUR, "largest_model", None),
        (told(step=None), FOUR, "days_bound", 6 * 4e9 * 80e9 / (2 * 600e12) / 86400),
        (told(step=None), FOUR, "mfu", None),
        (told(), FOUR, "mfu", 0.4),  # against the dense peak
        (told(peak=None, sheet=None), FOUR, "mfu", None),
        (told(link=None, all_reduce=None), FOUR, "exchange", None),
        (told(), FOUR, "exchange", 4 * 4e9 / 320e9),
        (told(), FOUR, "exchange_hidden", 0.0),
        (told(all_reduce=None), FOUR, "exchange", 4 * 4e9 / 300e9),
        (told(), Question(machines=2), "exchange", 4 * 13e9 / 320e9),
        (told(), FOUR, "feed", 2 * 400e12 / (6 * 4e9) / 100e6),
        (told(), FOUR, "checkpoint", 24 / 3600),
        (told(checkpoint=None), FOUR, "checkpoint", 64 / 3 / 3600),
        (told(checkpoint=None, write=None), FOUR, "checkpoint", None),
    ],
)
def test_a_line_has_its_value(
    found: Figures, asked: Question, name: str, value: float | None
) -> None:
    assert line(made(found, asked), name).value == (value and pytest.approx(value))


# --- what binds ---

GPUS_BIND = "The GPUs' own rate is the bottleneck"


@each(
    "found, asked, begins, ends",
    [
        (told(), FOUR, f"{GPUS_BIND}: the last backward pass hides the exchange of gradients.", ""),
        (
            told(all_reduce=figure(30e9, "collective_all_reduce", GPUS, 1)),
            FOUR,
            f"{GPUS_BIND}: ",
            " of an update is waiting for gradients.",
        ),
        (
            told(all_reduce=figure(5e9, "collective_all_reduce", GPUS, 1)),
            FOUR,
            "The links are the bottleneck: ",
            "",
        ),
        (told(link=None, all_reduce=None), FOUR, f"{GPUS_BIND}, as far as was measured.", ""),
        (
            told(feed=figure(1e4, "storage_memmap_cold", DISK, 1)),
            FOUR,
            "The disk is the bottleneck: it feeds fewer tokens than the GPUs take.",
            "",
        ),
        (
            told(),
            Question(parameters=4e9, checkpoint_every=20),
            "The disk is the bottleneck: a checkpoint takes longer than the time between two.",
            "",
        ),
        (
            told(**NOTHING),
            FOUR,
            "The bottleneck is not known: no rate of a step or a product was measured.",
            "",
        ),
        (
            told(),
            Question(parameters=12e9),
            "Memory is the bottleneck: the model does not fit on 2 GPUs, sharded and with "
            "checkpointing; its weights, gradients and optimizer alone fill 3 GPUs.",
            "",
        ),
    ],
    told=[
        "what is hidden",
        "links that are slower",
        "links that are much slower",
        "links that were not measured",
        "a disk that feeds too little",
        "checkpoints that are too frequent",
        "nothing was measured",
        "a model that does not fit",
    ],
)
def test_what_binds(found: Figures, asked: Question, begins: str, ends: str) -> None:
    binds = made(found, asked).binds
    assert (binds[: len(begins)], binds.endswith(ends)) == (begins, True)


def test_a_run_that_measured_nothing() -> None:
    found = made(told(**NOTHING))
    assert found.machine == "2 x GPU"
    values = {one.id for one in found.lines if one.value is not None}
    assert values == {"pipeline_bubble", "batch"}
    assert all("not measured" in one.text for one in found.lines if one.id in ("feed", "exchange"))
    for gpus, asked, count in ((2, Question(machines=2, gpus=4), 2), (1, Question(gpus=4), 1)):
        assert len(made(told(gpus=gpus), asked).besides) == count
    assumed = training(Question(), 2, None)
    assert (assumed.model.parameters, assumed.tokens, assumed.context) == (7e9, 140e9, 4096)
    assert (assumed.batch.samples, assumed.gpus, assumed.checkpoint_every) == (8, 2, 3600.0)


@each("found", [told(), told(gpus=1), told(**NOTHING)])
@each("language", [ENGLISH, languages.language("zh-CN")])
def test_every_line_says_source_and_assumption_in_both_languages(
    found: Figures, language: Language
) -> None:
    for one in card(found, Question(), language).lines:
        assert all((one.source, one.assumes, one.formula))
        assert one.inputs or one.value is None


@each("memory, lines", [(MEMORY, 5), (None, 0)])
def test_the_terminal_shows_the_table_where_memory_is_known(
    memory: float | None, lines: int
) -> None:
    found = made(told(memory=memory))

    def seen(*, why: bool) -> list[str]:
        parts = tuple(report.parts(found, memory, ENGLISH, why=why))
        return drawn.lines(Report("", (Section("", parts),)))

    shown, explained = seen(why=False), seen(why=True)
    assert sum(line.startswith(("sharding", "none", "ZeRO-")) for line in shown) == lines
    assert shown[0] == found.answer
    assert len(shown) == 3 + lines + len(found.lines)
    assert not any(one.formula in line for one in found.lines for line in shown)
    assert len(explained) == 3 + lines + 3 * len(found.lines)
    assert all(any(one.formula in line for line in explained) for one in found.lines)


def test_the_answer_stands_first() -> None:
    for found, name in (
        (told(), "days"),
        (told(step=None), "days_bound"),
        (told(step=None, product=None), "days"),
    ):
        answer = made(found).answer
        assert answer.startswith("4 billion parameters, 80 billion tokens, 2 GPUs: ")
        assert answer.endswith(f": {line(made(found), name).text}. {made(found).binds}")
    large = made(told(), Question(parameters=900e9))
    assert large.answer == large.binds, "a model that does not fit takes no days"
    chinese = card(told(), FOUR, languages.language("zh-CN")).answer
    assert " " not in chinese[chinese.index("\u3002") : chinese.index("\u3002") + 2]


# --- the question ---


@each(
    "memory, gpus, size",
    [(80e9, 8, 13e9), (25e9, 2, 1.3e9), (150e9, 8, 70e9), (8e9, 1, 350e6), (1e9, 1, 125e6)],
)
def test_the_largest_usual_size_that_fits_is_taken(memory: float, gpus: int, size: float) -> None:
    assert training(Question(), gpus, memory).model.parameters == size


@each(
    "value, unit, text",
    [
        (1, "GPUs", "1 GPU"),
        (2, "GPUs", "2 GPUs"),
        (7e9, "parameters", "7 billion parameters"),
        (9.422e9, "parameters", "9.4 billion parameters"),
        (999_960_000, "tokens", "1 billion tokens"),
        (1.4e12, "tokens", "1.4 trillion tokens"),
        (131.4e6, "tokens", "131 million tokens"),
        (6.3e24, "FLOP", "6.3e24 FLOP"),
        (999_999, "tokens", "999999 tokens"),
        (150.8e9, "B", "140.4 GiB"),
        (730.1e9, amounts.FILE, "730.1 GB"),
        (0.5, "ratio", "0.5"),
        (450e9, "B/s", "450 GB/s"),
        (989e12, "FLOP/s", "989 TFLOP/s"),
    ],
)
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amounts.amount(value, unit, ENGLISH) == text


@each(
    "value, text",
    [
        (9.422e9, "94.2 \u4ebf"),
        (350e6, "3.5 \u4ebf"),
        (1.4e12, "1.4 \u4e07\u4ebf"),
        (2.5e6, "250 \u4e07"),
        (999, "999"),
    ],
)
def test_chinese_counts_in_its_own_sizes(value: float, text: str) -> None:
    assert amounts.count(value, languages.language("zh-CN")) == text


# --- the figures of a run ---


Values = Mapping[tuple[str, Component, str], float]


def run_of(values: Values, seen: Inventory | None = None) -> Run:
    dues = [journals.due(name, where, unit, None) for name, where, unit in values]
    plan = structs.replace(
        journals.plan(journals.check("train.step", *dues)), gpus=(Gpu(0), Gpu(1))
    )
    finite = {key: value if math.isfinite(value) else None for key, value in values.items()}
    bodies: list[Body] = [
        structs.replace(body, value=finite[body.measurement, body.component, body.unit])
        if isinstance(body, Measured)
        else body
        for body in journals.bodies(plan)
    ]
    found = samples.run(bodies)
    return found if seen is None else samples.seen(found, msgspec.to_builtins(seen))


WHOLE: Values = {
    ("gemm_bf16", Gpu(0), "TFLOP/s"): 660.0,
    ("gemm_bf16", Gpu(1), "TFLOP/s"): 650.0,
    ("step_matmul", Gpu(0), "TFLOP/s"): 640.0,
    ("step_gpt2", Gpu(0), "TFLOP/s"): 400.0,
    ("parallel_ddp_efficiency", GPUS, "ratio"): 0.9,
    ("p2p_write", Pair(Gpu(0), Gpu(1)), "GB/s"): 20.0,
    ("p2p_write", Pair(Gpu(1), Gpu(0)), "GB/s"): 19.0,
    ("collective_all_reduce", GPUS, "GB/s"): 18.0,
    ("storage_write", DISK, "GB/s"): 3.0,
    ("storage_write", Part("disk", "sda"), "GB/s"): 0.5,
    ("storage_checkpoint_write", DISK, "s"): 5.0,
    ("storage_feed_host", DISK, "Mtokens/s"): 900.0,
}


def test_what_a_run_measured() -> None:
    found = figures.measured(run_of(WHOLE), ())
    assert found.product == Figure(650e12, "gemm_bf16", Gpu(1), 2)
    assert found.step == Figure(400e12, "step_gpt2", Gpu(0), 1)
    assert found.efficiency("ddp") == Figure(0.9, "parallel_ddp_efficiency", GPUS, 1)
    assert found.efficiency("tp") is None
    assert found.link == Figure(19e9, "p2p_write", Pair(Gpu(1), Gpu(0)), 2)
    assert found.all_reduce is not None
    assert found.write == Figure(3e9, "storage_write", DISK, 2)
    assert found.checkpoint == Figure(5.0, "storage_checkpoint_write", DISK, 1)
    assert found.feed == Figure(900e6, "storage_feed_host", DISK, 1)
    assert (found.gpus, found.memory, found.peak, found.peer_access) == (0, None, None, None)


def two(**changed: Any) -> Inventory:
    """Two RTX 4090, the second with these changes."""
    return gpu_machine.machine(gpu_machine.device(0), gpu_machine.device(1, **changed))


SIZE = known(gpu_machine.device(0).memory_bytes) - 5
CARD = ("NVIDIA GeForce RTX 4090", SIZE, 165.2e12, "GeForce RTX 4090")


@each(
    "changed, device_id, told_",
    [
        ({"memory_bytes": SIZE}, None, CARD),
        ({"memory_bytes": None}, None, (CARD[0], None, *CARD[2:])),
        ({"name": "NVIDIA Unknown", "memory_bytes": SIZE}, "10de:ffff", (None, SIZE, None, None)),
    ],
    told=["the least of two", "no size", "an unknown card"],
)
def test_what_the_machine_shows(
    changed: dict[str, Any], device_id: str | None, told_: tuple[object, ...]
) -> None:
    seen = two(**changed)
    if device_id:
        functions = [with_changes(one, device_id=device_id) for one in seen.pci or ()]
        seen = with_changes(seen, pci=tuple(functions))
    found = figures.measured(run_of(WHOLE, seen), gpu_limits.sheets())
    assert (found.gpus, found.model, found.memory, found.peak, found.sheet) == (2, *told_)


@each(
    "answers, access",
    [(("ok", "ok"), True), (("ok", "disabled-by-regkey"), False), (("ok", None), None)],
)
def test_peer_access(answers: tuple[str | None, ...], access: bool | None) -> None:
    seen = two()
    ways = tuple(
        with_changes(way, p2p_write=answer)
        for way, answer in zip(seen.nvml.pairs, answers, strict=True)
    )
    seen = with_changes(seen, nvml=with_changes(seen.nvml, pairs=ways))
    assert figures.measured(run_of(WHOLE, seen), ()).peer_access is access


@each("value, unit", [(0.0, "TFLOP/s"), (-5.0, "TFLOP/s"), (math.nan, "TFLOP/s"),
                      (1e9, "TFLOP/s"), (5.0, "count")])  # fmt: skip
def test_a_value_that_no_machine_has_is_none(value: float, unit: str) -> None:
    assert figures.measured(run_of({("gemm_bf16", Gpu(0), unit): value}), ()).product is None
