"""What proves a load of layers: every due layer, with every tensor compared."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from cases import each
from load_texts import (
    Change,
    cell,
    changed,
    hello,
    printed,
    refusal,
    refusal_message,
    rows,
)
from msgspec.structs import replace as replaced
from sound_loads import RATES, WRONG_GRADIENT, sound

from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.loads.protocol import LoadOutput
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


def output(ask: Ask, *changes: Change, about: Mapping[str, Any] = ABOUT, **more: Any) -> LoadOutput:
    return changed(printed(ask, about, **more), *changes)


def code(ask: Ask, *changes: Change, ran_s: float = 20.0, **more: Any) -> str:
    return refusal(ask, output(ask, *changes, **more), {"uuid": "GPU-1"}, ran_s)


LLAMA = ("llama", "bf16", 2048, 8)
EVERY = [(name, "bf16", s, b) for name, s, batches in GRID for b in batches]
BATCHES = sound(JUDGED, ABOUT).facts["batches"]
OLDER = {**ABOUT, "capability": "7.5"}
NARROW = [replaced(ask, dtype="f16") for ask in (JUDGED, TABLE)]


def test_whole_output_is_proof() -> None:
    assert {one.name: one.value for one in output(JUDGED).readings}["layer_bert"] == 436.0
    assert [len(output(ask, about=OLDER).tables[0].rows) for ask in NARROW] == [5, 88]
    assert len(output(TABLE).tables[0].rows) == 176
    assert (layer_tensors(1, judged=True), layer_tensors(4, judged=False)) == (155, 300)
    reasons = output(TABLE, unmeasured={LLAMA: "no time"}).tables[0].rows[43][4:]
    assert reasons == ("no time",) * 3


@each(
    "ask, changes, more, why",
    [
        (JUDGED, (), {"ran_s": 7.6}, ""),
        (JUDGED, (), {"ran_s": 7.5}, "load_ended_early"),
        (TABLE, (), {"ran_s": 0.5}, ""),  # it ends when it is complete
        # a smaller GPU has a smaller batch
        (
            JUDGED,
            (cell(LAYER_TABLE, 4, 3, 2.0), hello(batches={**BATCHES, "llama": 2})),
            {},
            "",
        ),
        # an older one has its own format
        *((ask, (), {"about": OLDER}, "") for ask in NARROW),
        *((ask, (), {"about": OLDER}, "load_parameter") for ask in (JUDGED, TABLE)),
        *(
            (TABLE, (hello(formats=formats),), {}, "load_parameter")
            for formats in (None, ["bf16"], ["f32", "bf16", "f16", "tf32"], ["f64"])
        ),
        # each due row is there once, with what the readings say
        *(
            (ask, (rows(LAYER_TABLE, change),), {}, "load_layer_rows")
            for ask in (JUDGED, TABLE)
            for change in (lambda found: found[:-1], lambda found: [*found, found[0]])
        ),
        *(
            (JUDGED, (cell(LAYER_TABLE, 0, place, value),), {}, "load_layer_rows")
            for place, value in enumerate(("llama", "f16", 128.0, 32.0, 1.0, 1.0, 1.0))
        ),
        *(
            (TABLE, (cell(LAYER_TABLE, 7, place, value),), {}, "load_layer_rows")
            for place, value in ((4, "no time"), (5, 0.0), (6, -1.0))
        ),
        # a cell without a rate says why; the judged format has rates
        *((TABLE, (), {"unmeasured": {LLAMA: why}}, "") for why in ("no time", "no memory")),
        (TABLE, (), {"unmeasured": {LLAMA: "too lazy"}}, "load_layer_rows"),
        (TABLE, (), {"unmeasured": dict.fromkeys(EVERY, "no time")}, "load_layer_rows"),
        # wrong tensors that are counted
        *(
            (ask, (), {"wrong": [WRONG_GRADIENT], "values": {"layer_miscompares": count}}, why)
            for ask in (JUDGED, TABLE)
            for count, why in ((0.0, "load_uncounted"), (1.0, ""), (2.0, "load_uncounted"))
        ),
    ],
)
def test_what_is_due(ask: Ask, changes: Any, more: dict[str, Any], why: str) -> None:
    assert code(ask, *changes, **more) == why


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
    assert code(JUDGED, hello(**about)) == "load_parameter"


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
    assert code(ask, **more) == why


def test_the_batches_of_a_shape_are_each_twice_the_one_before() -> None:
    doubled = [(2 * before, after) for *_, some in GRID for before, after in pairwise(some)]
    assert all(due == after for due, after in doubled)
