"""The checks of transformer layers: what two H200 gave, held against the limits that they have."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import sound_loads
from boxes import Box
from cases import each
from gpu_machine import TRAITS, device, machine
from load_texts import printed
from suite_box import Printed, Said, ask, planned
from synthetic_machines import SHEETS, inventory

from acceptance.core.parts import Component, Gpu
from acceptance.core.plan import Plan
from acceptance.expect import gpu_limits
from acceptance.expect.sheet import Sheet
from acceptance.loads import asks
from acceptance.loads.protocol import LoadTable
from acceptance.loads.train.layer_contract import LAYER_COLUMNS, Ask
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.session.loads import Part
from acceptance.suites import train
from acceptance.suites.fixtures import train as fixtures
from acceptance.tools.proof import ToolError

NAMES = (Gpu(0), Gpu(1))
CARDS = {one.name: one for one in SHEETS.values()}
H200 = CARDS["H200 SXM 141GB"]


@functools.cache
def seen() -> Inventory:
    return inventory(Box("8xh200.toml", "H200 SXM 141GB", 2, (5, 16), 18, "ok"))


@functools.cache
def made() -> Plan:
    return planned(seen(), NAMES, ("train",), "d")


CHECKS = {
    "train.layers": (train.test_layers, Ask(dtype="bf16", seconds=2.0)),
    "train.layer_table": (train.test_layer_table, Ask(dtype="bf16", seconds=3.0, table=True)),
}


def said(
    name: str = "train.layers",
    sheets: Mapping[Component, Sheet] | None = None,
    *,
    died: bool = False,
    **second: Any,
) -> Said:
    """What a check says of two GPUs, of which the second one's load prints this, or broke off."""
    function, due = CHECKS[name]

    def say(part: Part) -> tuple[str, int]:
        assert asks.of_argv(part.argv) == due
        about = {"uuid": part.env["CUDA_VISIBLE_DEVICES"], "capability": "9.0"}
        text = printed(due, about, **(second if part.component == Gpu(1) else {}))
        broke = died and part.component == Gpu(1)
        return text.rpartition('{"end"')[0] if broke else text, int(broke)

    formats: Any = fixtures.trained_formats
    programs = Printed(say)
    found = ask(
        made(),
        name,
        function,
        loads=programs.loads(),
        due_gpus=gpus(seen()),
        trained_formats=formats.__wrapped__(gpus(seen())),
        load_s={"train_layers": 2.0, "train_layer_table": 3.0},
        own_sheets=sheets or {},
    )
    ((first, other),) = programs.asked
    assert (first.component, other.component) == NAMES
    return found


def test_two_sound_gpus() -> None:
    found = said()
    assert (found.outcome, found.message) == ("pass", "")
    assert found.measured("layer_bert") == dict.fromkeys(NAMES, 436.0)
    assert found.measured("layer_bert_ratio") == dict.fromkeys(NAMES, 1.0)
    assert found.measured("layer_matmul") == dict.fromkeys(NAMES, 658.0)
    assert [(one.component, one.name, one.columns) for one in found.tables()] == [
        (name, "train_layers", LAYER_COLUMNS) for name in NAMES
    ]


@each("share, outcome", [(0.97, "pass"), (0.95, "pass"), (0.93, "pass"), (0.91, "fail")])
def test_a_gpu_slower_than_its_sibling(share: float, outcome: str) -> None:
    found = said(share=share)
    assert found.outcome == outcome
    assert ("layer_gpt2_ratio on gpu1" in found.message) == (outcome == "fail")


def test_both_slow_by_their_own_product() -> None:
    """No sibling tells it; the share of an H200 has a floor."""
    rates = sound_loads.RATES | {"bert": (400.0, 0.5 * 658.0)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sound_loads, "RATES", rates)
        found = said()
    assert found.outcome == "fail"
    assert "layer_bert_share on gpu0: measured 0.5, limit >= 0.51" in found.message
    assert "layer_bert_share on gpu1" in found.message


def test_a_wrong_gradient() -> None:
    found = said(wrong=[sound_loads.WRONG_GRADIENT])
    assert found.outcome == "fail"
    assert "layer_miscompares on gpu1: measured 1, limit <= 0" in found.message
    assert found.measured("layer_miscompares") == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert "attention.query.weight" in str(found.written)


def test_a_load_that_dies_after_a_wrong_result_counts_and_is_no_pass() -> None:
    found = said(wrong=[sound_loads.WRONG_GRADIENT], died=True)
    assert found.outcome != "pass"
    assert found.measured("layer_miscompares") == {Gpu(0): 0.0, Gpu(1): 1.0}
    assert found.measured("layer_bert") == {Gpu(0): 436.0}


def test_the_table_and_the_parts() -> None:
    found = said("train.layer_table", {Gpu(0): H200})
    assert (found.outcome, found.message) == ("pass", "")
    assert found.measured("layer_attention") == dict.fromkeys(NAMES, 105.7)
    (first, second) = found.tables()
    assert (first.columns[-1], second.columns) == ("published TFLOP/s", LAYER_COLUMNS)
    told = {tuple(row[:4]): row[-1] for row in first.rows}
    assert told["bert", "bf16", 512, 64] == 436
    assert told["bert", "f16", 512, 64] == 421
    assert told["bert", "f32", 512, 64] == told["llama", "bf16", 2048, 8] == "-"
    assert told["gpt2", "f16", 1024, 64] == "472 in bf16"


@each(
    "name, row, told",
    [
        ("GeForce RTX 4090", ("gpt2", "bf16", 1024.0, 64.0), "44.113 in f16"),
        ("GeForce RTX 4090", ("gpt2", "f16", 1024.0, 64.0), 44.113),
        ("GeForce RTX 4090", ("gpt2", "tf32", 1024.0, 64.0), "-"),
        ("A100 SXM4 80GB", ("bert", "bf16", 512.0, 64.0), "best 136 in f16"),
        ("A100 SXM4 80GB", ("llama", "bf16", 2048.0, 8.0), "-"),
    ],
)
def test_figures_of_the_same_model_of_card(
    name: str, row: tuple[float | str, ...], told: float | str
) -> None:
    other = ("bert", "f16", 128.0, 64.0)
    table = LoadTable(
        "train_layers", LAYER_COLUMNS, tuple((*one, 1.0, 1.0, 1.0) for one in (row, other))
    )
    found = train.with_published(table, CARDS[name])
    assert found.columns == (*LAYER_COLUMNS, "published TFLOP/s")
    assert found.rows[0][-1] == told


@each("sheet", [None, CARDS["T4"]])
def test_without_figures_the_table_is_as_it_was(sheet: Sheet | None) -> None:
    table = LoadTable("train_layers", LAYER_COLUMNS, (("bert", "f16", 512.0, 64.0, 1.0, 1.0, 1.0),))
    assert train.with_published(table, sheet) == table


def test_the_format_is_the_one_that_the_gpu_has() -> None:
    fixture: Any = fixtures.trained_formats
    older = machine(device(0), device(1, traits=replace(TRAITS, compute_capability="7.5")))
    assert fixture.__wrapped__(gpus(older)) == {Gpu(0): "bf16", Gpu(1): "f16"}
    silent = machine(device(0, traits=replace(TRAITS, compute_capability=None)))
    with pytest.raises(ToolError, match="does not tell the compute capability of gpu0"):
        fixture.__wrapped__(gpus(silent))


def test_sheets_of_those_that_have_one() -> None:
    fixture: Any = fixtures.own_sheets
    assert fixture.__wrapped__(gpus(seen()), gpu_limits.sheets()) == dict.fromkeys(NAMES, H200)
    unknown = gpus(machine(device(0, name="NVIDIA Unheard Of")))
    assert fixture.__wrapped__(unknown, gpu_limits.sheets()) == {}
