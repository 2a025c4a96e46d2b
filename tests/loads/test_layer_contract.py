"""What proves a load of layers: every due layer, with every tensor compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import load_texts
from cases import each
from load_texts import hello, printed, refusal, refusal_message
from msgspec.structs import replace as replaced
from sound_loads import RATES, WRONG_GRADIENT, sound

from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.loads.protocol import LoadOutput, parse
from acceptance.loads.train.layer_contract import (
    GRID,
    LAYER_COLUMNS,
    LAYER_TABLE,
    Ask,
    layer_tensors,
)

JUDGED = Ask(dtype="bf16", seconds=8.0)
TABLE = Ask(dtype="bf16", seconds=8.0, table=True)
ABOUT = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}


def output(ask: Ask, about: dict[str, Any] = ABOUT, **more: Any) -> LoadOutput:
    return parse(printed(ask, about, **more))


def changed(
    ask: Ask = JUDGED, wrong: Any = (), about: Mapping[str, Any] = {}, **more: Any
) -> LoadOutput:
    """A sound output, with other values, parameters or whatever else is printed."""
    return load_texts.changed(printed(ask, ABOUT, wrong=wrong, **more), hello(**about))


def with_row(ask: Ask, number: int, place: int, cell: Any) -> LoadOutput:
    """A sound output with one other cell of its table."""
    rows = [list(row) for row in sound(ask, ABOUT).tables[LAYER_TABLE]]
    rows[number][place] = cell
    return changed(ask, tables={LAYER_TABLE: (LAYER_COLUMNS, rows)})


def with_rows(ask: Ask, first: int, last: int | None = None) -> LoadOutput:
    """A sound output with a part of its table twice."""
    rows = sound(ask, ABOUT).tables[LAYER_TABLE]
    return changed(ask, tables={LAYER_TABLE: (LAYER_COLUMNS, [*rows[:last], *rows[:first]])})


def code(found: LoadOutput, ask: Ask = JUDGED, ran_s: float = 20.0) -> str:
    return refusal(ask, found, {"uuid": "GPU-1"}, ran_s)


def test_whole_output_is_proof() -> None:
    assert {one.name: one.value for one in output(JUDGED).readings}["layer_bert"] == 436.0
    assert code(output(JUDGED)) == code(output(JUDGED), ran_s=7.6) == ""
    assert len(output(TABLE).tables[0].rows) == 176
    assert code(output(TABLE), TABLE, ran_s=0.5) == ""  # it ends when it is complete


def test_every_tensor_of_every_layer_is_due() -> None:
    assert (layer_tensors(1, judged=True), layer_tensors(4, judged=False)) == (155, 300)


def test_wrong_tensors_that_are_counted_are_proof() -> None:
    for ask in (JUDGED, TABLE):
        assert code(changed(ask, [WRONG_GRADIENT]), ask) == ""
        uncounted = changed(ask, [WRONG_GRADIENT], values={"layer_miscompares": 0.0})
        assert code(uncounted, ask) == "load_uncounted"
        many = changed(ask, [WRONG_GRADIENT], values={"layer_miscompares": 2.0})
        assert code(many, ask) == "load_uncounted"


def test_a_smaller_gpu_has_a_smaller_batch() -> None:
    batches = sound(JUDGED, ABOUT).facts["batches"]
    smaller = replace(
        with_row(JUDGED, 4, 3, 2.0),
        parameters={**output(JUDGED).parameters, "batches": {**batches, "llama": 2}},
    )
    assert code(smaller) == ""


def test_an_older_gpu_has_its_own_format_and_fewer() -> None:
    older = {**ABOUT, "capability": "7.5"}
    for ask, rows in ((JUDGED, 5), (TABLE, 88)):
        asked = replaced(ask, dtype="f16")
        found = output(asked, older)
        assert len(found.tables[0].rows) == rows
        assert code(found, asked) == ""
        assert code(output(ask, older), ask) == "load_parameter"


@each(
    "about",
    [
        {"device": "cpu"},
        {"dtype": "f16"},
        {"seconds": 9.0},
        {"table": True},
        {"uuid": "GPU-2"},
        *({"capability": one} for one in ("7.5", "none", None)),
        *({"batches": one} for one in (None, {"bert": 64}, {**dict.fromkeys(RATES, 48)})),
        {"batches": {**dict.fromkeys(RATES, 64), "llama": 8, "gpt2": 64.0}},
    ],
)
def test_other_parameters_prove_nothing(about: dict[str, Any]) -> None:
    assert code(changed(about=about)) == "load_parameter"


@each("formats", [None, ["bf16"], ["f32", "bf16", "f16", "tf32"], ["f64"]])
def test_the_table_has_the_formats_of_the_gpu(formats: Any) -> None:
    assert code(changed(TABLE, about={"formats": formats}), TABLE) == "load_parameter"


def test_a_share_that_does_not_fit_its_rate_is_told_with_both_rates() -> None:
    of = {"layer_bert": 40.0, "layer_matmul": 80.0, "layer_bert_share": 0.75}
    message = refusal_message(JUDGED, output(JUDGED, values=of), {"uuid": "GPU-1"}, 20.0)
    told = {"name": "layer_bert_share", "share": "0.75", "rate": "40", "matmul": "80"}
    assert message == Message("load_share", told)


@each(
    "ask, more, why",
    [
        (JUDGED, {"without": ("layer_gpt2",)}, "load_unmeasured"),
        (TABLE, {"without": ("layer_dense",)}, "load_unmeasured"),
        (JUDGED, {"more": {("layer_dense", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        (JUDGED, {"values": {"layer_bert_share": 0.9}}, "load_share"),
        (JUDGED, {"values": {"layer_matmul": 0.0}}, "load_rate_none"),
        (JUDGED, {"values": {"layer_bert_forward": 0.0}}, "load_rate_none"),
        (TABLE, {"values": {"layer_dense": 0.0}}, "load_rate_none"),
        (JUDGED, {"tables": {LAYER_TABLE: (LAYER_COLUMNS, [])}}, "load_without_table"),
        *((ask, {"notes": ()}, "load_tensors_uncompared") for ask in (JUDGED, TABLE)),
        (JUDGED, {"notes": ("154 tensors compared, 0 of them wrong",)}, "load_tensors_uncompared"),
        (
            JUDGED,
            {
                "wrong": [WRONG_GRADIENT],
                "values": {"layer_miscompares": 1.0},
                "notes": ("155 tensors compared, 0 of them wrong",),
            },
            "load_tensors_uncompared",
        ),
    ],
)
def test_anything_less_proves_nothing(ask: Ask, more: dict[str, Any], why: str) -> None:
    assert code(changed(ask, **more), ask) == why


@each("place, cell", list(enumerate(("llama", "f16", 128.0, 32.0, 1.0, 1.0, 1.0))))
def test_the_rows_are_those_of_the_readings(place: int, cell: float | str) -> None:
    assert code(with_row(JUDGED, 0, place, cell)) == "load_layer_rows"


@each("first, last", [(0, -1), (1, None)])
def test_each_due_row_is_there_once(first: int, last: int | None) -> None:
    for ask in (JUDGED, TABLE):
        assert code(with_rows(ask, first, last), ask) == "load_layer_rows"


@each("reason", ["no time", "no memory"])
def test_a_cell_without_a_rate_says_why(reason: str) -> None:
    found = output(TABLE, unmeasured={("llama", "bf16", 2048, 8): reason})
    assert found.tables[0].rows[43][4:] == (reason,) * 3
    assert code(found, TABLE) == ""


def test_the_batches_of_a_shape_are_each_twice_the_one_before() -> None:
    doubled = [(2 * before, after) for *_, some in GRID for before, after in pairwise(some)]
    assert all(due == after for due, after in doubled)


def test_no_other_reason_is_one_and_the_judged_format_has_rates() -> None:
    lazy = output(TABLE, unmeasured={("llama", "bf16", 2048, 8): "too lazy"})
    assert code(lazy, TABLE) == "load_layer_rows"
    every = [(name, "bf16", s, b) for name, s, batches in GRID for b in batches]
    none = output(TABLE, unmeasured=dict.fromkeys(every, "no time"))
    assert code(none, TABLE) == "load_layer_rows"
    for place, cell in ((4, "no time"), (5, 0.0), (6, -1.0)):
        assert code(with_row(TABLE, 7, place, cell), TABLE) == "load_layer_rows"
