"""An output is held against what was asked: no more, no less, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pair_outputs
import pytest
from cases import each
from load_texts import Change, Lines, changed, hello, printed, refusal, refusal_message
from wrong_results import REPEATED

from acceptance.core.message import Message
from acceptance.core.parts import Gpu
from acceptance.loads import contract
from acceptance.loads.asks import ASKS, AnyAsk
from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.copy import contract as copy
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm.contract import COLUMNS, Ask
from acceptance.loads.miscompare import read
from acceptance.loads.protocol import KeptLog, LoadOutput, LoadTable, parse
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.storage import contract as storage
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.vram import contract as vram

ASK = Ask(dtypes=("f64", "f8"), seconds=2.0)
TABLES = Ask(dtypes=("f64",), seconds=2.0, table=(128,))
OWN = {"uuid": "GPU-1a"}


def output(ask: Ask = ASK, about: dict[str, Any] = OWN, **more: Any) -> LoadOutput:
    return parse(printed(ask, about, **more))


def code(
    found: LoadOutput, ask: Ask = ASK, about: dict[str, Any] = OWN, ran_s: float = 10.0
) -> str:
    return refusal(ask, found, about, ran_s)


@each("uuid", ["GPU-1a", "1a", "gpu-1A"])
def test_a_gpu_is_the_same_with_the_drivers_prefix_and_without(uuid: str) -> None:
    assert code(output(about={"uuid": uuid})) == ""
    assert contract.same_gpu("GPU-1a", uuid)


@each(
    "one, other",
    [("GPU-1", None), (None, "GPU-1"), (None, None), ("GPU-", "GPU-"), ("", ""), (1, 1)],
)
def test_what_names_no_gpu_is_never_the_same(one: object, other: object) -> None:
    assert not contract.same_gpu(one, other)
    assert code(output(about={"uuid": one}), about={"uuid": other}) == "load_parameter"


MODEL = {**OWN, "gpu": "NVIDIA H200"}
BOTH = {"uuids": ["GPU-1", "GPU-2"]}
SIZES = ("gemm_f64_by_size", COLUMNS, ((128.0, 1.0),))


@each(
    "told, about, why",
    [
        # all GPUs of a load are compared in their order
        ({"uuids": ["1", "2"]}, BOTH, ""),
        *(({"uuids": one}, BOTH, "load_parameter") for one in (["1"], ["2", "1"], None, "12")),
        # the model is compared where the load says it
        (OWN, MODEL, ""),
        (MODEL, MODEL, ""),
        ({**OWN, "gpu": "NVIDIA H100"}, MODEL, "load_parameter"),
    ],
)
def test_what_is_known_of_the_gpus(told: dict[str, Any], about: dict[str, Any], why: str) -> None:
    assert code(output(about=told), about=about) == why


@each(
    "more, ran_s, why",
    [
        ({}, 4.0, ""),
        ({}, 3.9, "load_ended_early"),
        # a format may be absent and then takes no time
        ({"absent": (1,)}, 2.0, ""),
        ({"absent": (0, 1)}, 0.0, ""),
        ({"wrong": (read(REPEATED),), "values": {"gemm_f8_miscompares": 1.0}}, 10.0, ""),
    ],
)
def test_a_whole_run_is_proof(more: dict[str, Any], ran_s: float, why: str) -> None:
    assert code(output(**more), ran_s=ran_s) == why


@each(
    "ask, tables, why",
    [
        (TABLES, [SIZES], ""),
        (TABLES, [], ""),  # none of the sizes fit
        (ASK, [SIZES], "load_stray"),
        (TABLES, [("gemm_f64_by_size", ("n", "GB/s"), SIZES[2])], "load_columns"),
    ],
)
def test_tables_are_those_that_are_due_with_their_columns(
    ask: Ask, tables: list[Any], why: str
) -> None:
    found = replace(output(ask), tables=tuple(LoadTable(*one) for one in tables))
    assert code(found, ask) == why


@each(
    "about, why",
    [
        ({"without": ("gemm_f8",)}, "load_unmeasured"),
        ({"more": {("gemm_i8", Gpu(0)): "TFLOP/s"}}, "load_stray"),
        ({"more": {("gemm_f8", Gpu(1)): "TFLOP/s"}}, "load_stray"),
        ({"values": {"gemm_f8": -1.0}}, "load_unit"),
        ({"wrong": (read(REPEATED),)}, "load_uncounted"),
        ({"about": {"uuid": "GPU-2"}}, "load_parameter"),
        ({"about": {**OWN, "dtypes": ["f64"]}}, "load_parameter"),
        ({"about": {**OWN, "seconds": 1.0}}, "load_parameter"),
        ({"about": {**OWN, "table": [128]}}, "load_parameter"),
        ({"about": {**OWN, "inject": "wrong"}}, "load_fault_injected"),
    ],
)
def test_anything_else_proves_nothing(about: dict[str, Any], why: str) -> None:
    assert code(output(**about)) == why


def test_a_table_and_a_log_that_are_due_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = LoadTable("sizes", COLUMNS, ((128.0, 1.0),))
    whole = replace(output(), tables=(sizes,), logs=(KeptLog("nccl", Gpu(0), "x"),))
    first = Ask.due

    def due(ask: Ask, found: LoadOutput) -> contract.Due:
        logs = frozenset({("nccl", Gpu(0))})
        return replace(first(ask, found), tables={"sizes": COLUMNS}, logs=logs)

    monkeypatch.setattr(Ask, "due", due)
    assert code(whole) == ""
    assert code(replace(whole, tables=())) == "load_without_table"
    missing = refusal_message(ASK, replace(whole, logs=()), OWN)
    assert missing == Message("load_without_log", {"component": "gpu0"})


# --- every load ---


@dataclass(frozen=True)
class Sound:
    """What a load was asked, its sound output, and what was known of the GPUs."""

    ask: AnyAsk
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return repr(self.ask)

    def code(self, *changes: Change) -> str:
        return refusal(self.ask, changed(self.text, *changes), self.about)


H200 = {"uuid": "GPU-1", "gpu": "NVIDIA H200", "capability": "9.0"}
UUIDS = ["GPU-1", "GPU-2"]
ON: dict[str, Any] = {"folder": "/d", "component": "disk:md0", "bytes": storage.LEAST}
CORES: dict[str, Any] = {"seconds": 8.0, "cores": {"socket0": ((0, 1), (2, 3))}}
PLAIN: Sequence[AnyAsk] = (
    cpu.Gemm(dtype="float64", **CORES),
    cpu.MemoryBandwidth(llc_bytes=1, **CORES),
    cpu.MemoryRandom(llc_bytes=1, gib=4.0, **CORES),
    storage.Memmap(seconds=3.0, **ON),
    storage.Feed(seconds=2.0, **ON),
    storage.Checkpoint(**ON),
    storage.Canary(way="write", machine="m1", **ON),
)
ON_GPU: Sequence[AnyAsk] = (
    ASK,
    burn.Ask(dtypes=("f64", "f8"), seconds=8.0, peers=1, plain=True),
    copy.Ask(seconds=2.0, peers=2),
    vram.Ask(seconds=8.0),
    *(layers.Ask(dtype="bf16", seconds=8.0, table=one) for one in (False, True)),
    *(step.Ask(seconds=6.0, table=one) for one in (False, True)),
    digest.Ask(seconds=20.0),
)
ON_ALL: Sequence[AnyAsk] = (
    parallel.Ask(ranks=2, seconds=1.0),
    pulse.Ask(gpus=2, steps=(pulse.Step("square", 2.0, 1.0), pulse.Step("cold", 8.0))),
    collective.Ask(backend="nccl", ranks=2, seconds=1.0),
)


@cache
def sound() -> tuple[Sound, ...]:
    both, own = {"uuids": UUIDS}, {"uuid": "GPU-1"}
    return (
        *(Sound(ask, printed(ask, {})) for ask in PLAIN),
        *(Sound(ask, printed(ask, H200), own) for ask in ON_GPU),
        *(Sound(ask, printed(ask, both), both) for ask in ON_ALL),
        Sound(pair_outputs.asked(1), printed(pair_outputs.asked(1))),
    )


@each("one", sound)
def test_a_sound_output_is_proof_after_its_time(one: Sound) -> None:
    assert {one.ask.load for one in sound()} == {*ASKS}
    found = parse(one.text)
    least_s = one.ask.least_s(found)
    assert refusal(one.ask, found, one.about, least_s) == ""
    if least_s:
        assert refusal(one.ask, found, one.about, 0.99 * least_s) == "load_ended_early"


def with_evidence(key: str) -> list[tuple[Sound, int]]:
    """Every line of this kind of every load, by its number."""
    return [
        (one, number)
        for one in sound()
        for number, line in enumerate(map(json.loads, one.text.splitlines()))
        if key in line
    ]


def without(number: int) -> Change:
    def change(lines: Lines) -> None:
        del lines[number]
        lines[-1]["readings"] -= 1

    return change


def other(number: int, **values: Any) -> Change:
    return lambda lines: lines[number].update(values)


@each("one, number", lambda: with_evidence("reading"))
def test_every_reading_is_due_in_its_unit(one: Sound, number: int) -> None:
    assert one.code(without(number)) == "load_unmeasured"
    assert one.code(other(number, component="gpu77")) == "load_unmeasured"
    assert one.code(other(number, value=-1.0)) == "load_unit"
    assert one.code(other(number, unit="degC")) == "load_unit"


@each("one, number", lambda: with_evidence("table"))
def test_every_table_is_due_with_its_columns(one: Sound, number: int) -> None:
    assert one.code(without(number)) == "load_without_table"
    columns = json.loads(one.text.splitlines()[number])["columns"]
    assert one.code(other(number, columns=[*columns[:-1], "x"])) == "load_columns"


@each("one, number", lambda: with_evidence("log"))
def test_every_log_is_due(one: Sound, number: int) -> None:
    assert one.code(without(number)) == "load_without_log"
    assert one.code(other(number, log="another")) == "load_without_log"


@each("one", sound)
def test_nothing_else_is_due(one: Sound) -> None:
    def more(line: dict[str, Any]) -> Change:
        def change(lines: Lines) -> None:
            lines.insert(-1, line)
            lines[-1]["readings"] += 1

        return change

    reading = {"reading": "another", "unit": "s", "component": "gpu0", "value": 1.0}
    assert one.code(more(reading)) == "load_stray"
    assert one.code(more({"table": "another", "columns": ["x"], "rows": [[1.0]]})) == "load_stray"
    assert one.code(more({"log": "another", "component": "gpu0", "text": ""})) == "load_stray"


@each("one", sound)
def test_what_the_first_line_says_is_what_was_asked(one: Sound) -> None:
    for name in {**one.ask.parameters(), **one.about}:
        assert one.code(hello(**{name: "another"})) == "load_parameter", name
    assert one.code(hello(inject="wrong")) == "load_fault_injected"
    assert one.code(other(0, load="another")) == "load_of_another"


@each("one", sound)
def test_a_wrong_result_must_be_counted(one: Sound) -> None:
    found = {"miscompare": REPEATED}
    assert one.code(lambda lines: lines.insert(1, found)) == "load_uncounted"
