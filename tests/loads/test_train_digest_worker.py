"""The repeats of a training run: a model of one, which counts; no torch."""

from __future__ import annotations

import argparse
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import each

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, Output, parse
from acceptance.loads.train import digest_load, digest_log, digest_trials
from acceptance.loads.train.digest_contract import COLUMNS, TABLE, Ask
from acceptance.loads.train.digest_trials import trials
from acceptance.loads.train.digest_worker import (
    FAULT_KINDS,
    DigestWorker,
    Fault,
    bit_of,
    draw,
    element_of,
)
from acceptance.loads.train.library_version import cublas_version

FORMATS: tuple[DigestFormat, ...] = ("bf16", "tf32")
COUNT = 4 * 3 + 6  # stamps of four steps of two tensors


class Clock:
    """Each run takes so many seconds."""

    def __init__(self, run_s: float = 1.0) -> None:
        self.now, self.run_s = 0.0, run_s

    def __call__(self) -> float:
        return self.now


class Counted:
    """A run whose stamps are numbers: a fault adds a bit to the stamp of its step, or to none."""

    tensors = ("a", "b")
    steps = 4

    def __init__(self, clock: Clock, found: Sequence[str] = FAULT_KINDS, trace: bool = False):
        self.clock, self.asked = clock, list[tuple[DigestFormat, Fault | None]]()
        self._found, self._trace, self._last = found, trace, False

    def run(self, dtype: DigestFormat, fault: Fault | None) -> list[list[int]]:
        self.asked.append((dtype, fault))
        self.clock.now += self.clock.run_s
        numbers = [[place, place, 0] for place in range(COUNT)]
        self._last = fault is not None and (fault.kind in self._found or self._trace)
        if fault is not None and fault.kind in self._found:
            numbers[fault.step * 3 + 1] = [77, fault.step * 3 + 1 + (1 << 9), 0]
        return numbers

    def remember(self) -> None:
        self._last = False

    def as_remembered(self) -> bool:
        return not self._last


def ran(ask: Ask, training: Counted) -> LoadOutput:
    stream = io.StringIO()
    output = Output(stream)
    output.hello("train_digest", {})
    DigestWorker(ask, FORMATS, training, output, training.clock).run()
    output.end()
    return parse(stream.getvalue())


def reading(output: LoadOutput) -> float:
    (one,) = output.readings
    assert (one.name, one.unit, one.component) == ("digest_repeats_differ", "count", Gpu(0))
    return one.value


def test_it_repeats_until_its_time_is_over() -> None:
    training = Counted(Clock())
    output = ran(Ask(seconds=9.0), training)
    assert [dtype for dtype, _ in training.asked] == [*FORMATS] * 5  # the fifth begins at 8
    (table,) = output.tables
    assert (table.name, table.columns) == (TABLE, COLUMNS)
    assert [row[:3] for row in table.rows] == [("bf16", 4, 5), ("tf32", 4, 5)]
    logs = {one.name: digest_log.parse(one.text) for one in output.logs}
    assert logs.keys() == {"train_digest_bf16", "train_digest_tf32"}
    assert table.rows[0][3:6] == logs["train_digest_bf16"].summaries
    assert (reading(output), output.miscompares) == (0, ())


@each("seconds", [0.1, 1.0, 4.0])
def test_it_runs_twice_however_short_its_time_is(seconds: float) -> None:
    training = Counted(Clock())
    ran(Ask(seconds=seconds), training)
    assert len(training.asked) == 4


@each("kind", FAULT_KINDS)
def test_an_injected_fault_is_in_the_second_run_of_one_format(kind: Any) -> None:
    for seed in range(20):
        training = Counted(Clock())
        output = ran(Ask(seconds=9.0, inject=kind, inject_seed=seed), training)
        faults = [(at, fault) for at, (_, fault) in enumerate(training.asked) if fault is not None]
        ((at, fault),) = faults
        assert at in (2, 3)
        assert fault.kind == kind
        (wrong,) = output.miscompares
        assert isinstance(wrong, DifferingRun)
        assert (wrong.format, wrong.repeat, wrong.step) == (FORMATS[at - 2], 1, fault.step)
        assert (wrong.part, wrong.tensor, wrong.kind, wrong.bit) == ("gradient", "a", "bit", 9)
        assert reading(output) == 1


def test_a_persistent_fault_is_the_same_in_every_run_and_differs_from_none() -> None:
    training = Counted(Clock())
    output = ran(Ask(seconds=9.0, inject="persistent", inject_seed=3), training)
    faults = [fault for _, fault in training.asked if fault is not None]
    assert len(faults) == len(training.asked) / 2
    assert len(set(faults)) == 1
    assert faults[0].kind == "gradient"
    assert reading(output) == 0


def test_faults_are_at_every_step_element_and_bit() -> None:
    drawn = [draw("weight", 4, random.Random(seed)) for seed in range(300)]
    assert {one.step for one in drawn} == {0, 1, 2, 3}
    assert {bit_of(32, one.bit) for one in drawn} == set(range(8, 24))
    assert {bit_of(16, one.bit) for one in drawn} == set(range(4, 12))
    places = [element_of([2, 0, 3], number) for number in range(10)]
    assert places[:5] == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]
    assert places[5:] == places[:5]


def test_trials_count_what_was_found_masked_and_missed() -> None:
    said: list[str] = []
    found = trials(FORMATS, Counted(Clock(), ("gradient", "weight")), 3, 7, said.append)
    assert [(one.kind, one.format) for one in found] == [
        (kind, dtype) for dtype in FORMATS for kind in FAULT_KINDS
    ]
    for one in found:
        hit = 3 if one.kind in ("gradient", "weight") else 0
        assert (one.tried, one.found, one.named) == (3, hit, hit)
        assert (one.masked, one.missed) == (3 - hit, 0)
    assert len(said) == 24
    missed = trials(FORMATS, Counted(Clock(), (), trace=True), 1, 7)
    assert {one.missed for one in missed} == {1}


ABOUT = {
    "gpu": "NVIDIA H200",
    "uuid": "GPU-1",
    "capability": "9.0",
    "library": "torch 2.10",
    "cublas": "12.8.4",
    "multiprocessors": 132,
}


def options(*more: str) -> argparse.Namespace:
    return digest_trials.arguments().parse_args([*more])


def test_the_hello_says_what_the_bits_depend_on() -> None:
    stream, training, made = io.StringIO(), Counted(Clock()), list[Any]()

    def make(device: str) -> Counted:
        made.append(device)
        return training

    digest_load.run(
        Ask(seconds=9.0, inject="weight", inject_seed=5),
        Output(stream),
        make,
        lambda _device: ABOUT,
    )
    output = parse(stream.getvalue())
    assert (output.load, output.injected) == ("train_digest", "weight")
    told = output.parameters
    assert (told["formats"], told["steps"], told["batch"], told["recipe"]) == (
        ["bf16", "tf32"],
        20,
        4,
        1,
    )
    assert (told["model"], told["sequence"], told["inject_seed"]) == ("GPT-2 small", 1024, 5)
    assert {**told, **ABOUT} == told
    assert made == ["cuda"]


def test_on_a_processor_the_model_is_tiny() -> None:
    stream = io.StringIO()
    digest_load.run(
        Ask(seconds=9.0, device="cpu"),
        Output(stream),
        lambda _device: Counted(Clock()),
        lambda _device: {"library": "torch 2.13"},
    )
    told = parse(stream.getvalue()).parameters
    assert (told["device"], told["model"], told["formats"]) == ("cpu", "tiny", ["bf16", "tf32"])
    assert not {"inject", "inject_seed"} & told.keys()


def test_trials_end_with_1_where_one_was_missed() -> None:
    asked = options("--device", "cpu", "--trials", "2")
    for trace, status in ((False, 0), (True, 1)):
        said: list[str] = []
        training = Counted(Clock(), (), trace=trace)

        def make(*_asked: Any, made: Counted = training) -> Counted:
            return made

        assert digest_trials.try_faults(asked, said.append, make, lambda _device: ABOUT) == status
        rows = said[said.index("kind format tried found masked missed named-one-bit") + 1 :]
        assert len(rows) == 8
        assert rows[0] == f"activation bf16 2 0 {0 if trace else 2} {2 if trace else 0} 0"


@each("text", ["0", "-1", "1.5", "x", "1000000", "\uff11"])
def test_trials_are_a_number(text: str) -> None:
    with pytest.raises(SystemExit):
        options("--trials", text)


MAPS = """7f00 r-xp 00000000 08:01 1 /usr/lib/libc.so.6
7f10 r-xp 00000000 08:01 2 /opt/nvidia/cublas/lib/libcublasLt.so.12
7f20 r-xp 00000000 08:01 3 /opt/nvidia/cublas/lib/libcublas.so.12
7f30 rw-p 00000000 08:01 3 /opt/nvidia/cublas/lib/libcublas.so.12
"""


class Library:
    def __init__(self, numbers: Sequence[int], status: int = 0) -> None:
        self._numbers, self._status = numbers, status

    def cublasGetProperty(self, part: int, number: Any) -> int:
        number._obj.value = self._numbers[part]
        return self._status


def test_the_version_of_cublas(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS)
    asked: list[str] = []

    def load(path: str) -> Library:
        asked.append(path)
        return Library([12, 8, 4])

    assert cublas_version(maps, load) == "12.8.4"
    assert asked == ["/opt/nvidia/cublas/lib/libcublas.so.12"]
    for broken in (Library([12, 8, 4], 1), Library([12, -1, 4])):
        with pytest.raises(LoadError, match="cublasGetProperty failed"):
            cublas_version(maps, lambda _path, one=broken: one)  # type: ignore[misc]
    maps.write_text(MAPS.splitlines()[0])
    with pytest.raises(LoadError, match="0 libraries are loaded"):
        cublas_version(maps, load)
    maps.write_text(MAPS + "7f40 r-xp 00000000 08:01 4 /usr/lib/libcublas.so.13.1.0\n")
    with pytest.raises(LoadError, match="2 libraries are loaded"):
        cublas_version(maps, load)
