"""The repeats of a training run: a model of one, which counts; no torch."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cases import each
from written import ran, written

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import DifferingRun, DigestFormat
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, parse
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


class Counted:
    """A run whose stamps are numbers: a fault adds a bit to the stamp of its step, or to none."""

    tensors = ("a", "b")
    steps = 4

    def __init__(self, found: Sequence[str] = FAULT_KINDS, trace: bool = False):
        self.now, self.asked = 0.0, list[tuple[DigestFormat, Fault | None]]()
        self._found, self._trace, self._last = found, trace, False

    def run(self, dtype: DigestFormat, fault: Fault | None) -> list[list[int]]:
        self.asked.append((dtype, fault))
        self.now += 1.0
        numbers = [[place, place, 0] for place in range(COUNT)]
        self._last = fault is not None and (fault.kind in self._found or self._trace)
        if fault is not None and fault.kind in self._found:
            numbers[fault.step * 3 + 1] = [77, fault.step * 3 + 1 + (1 << 9), 0]
        return numbers

    def remember(self) -> None:
        self._last = False

    def as_remembered(self) -> bool:
        return not self._last


def repeated(ask: Ask, training: Counted) -> LoadOutput:
    return ran(
        "train_digest",
        lambda output: DigestWorker(ask, FORMATS, training, output, lambda: training.now).run(),
    )


def loaded(ask: Ask, make: Callable[[str], Counted], about: dict[str, Any]) -> LoadOutput:
    return parse(written(lambda output: digest_load.run(ask, output, make, lambda _device: about)))


def reading(output: LoadOutput) -> float:
    (one,) = output.readings
    assert (one.name, one.unit, one.component) == ("digest_repeats_differ", "count", Gpu(0))
    return one.value


@each("seconds, runs", [(0.1, 2), (1.0, 2), (4.0, 2), (9.0, 5)])
def test_it_repeats_until_its_time_is_over_and_once_at_least(seconds: float, runs: int) -> None:
    training = Counted()
    output = repeated(Ask(seconds=seconds), training)
    assert [dtype for dtype, _ in training.asked] == [*FORMATS] * runs
    (table,) = output.tables
    assert (table.name, table.columns) == (TABLE, COLUMNS)
    assert [row[:3] for row in table.rows] == [("bf16", 4, runs), ("tf32", 4, runs)]
    logs = {one.name: digest_log.parse(one.text) for one in output.logs}
    assert logs.keys() == {"train_digest_bf16", "train_digest_tf32"}
    assert table.rows[0][3:6] == logs["train_digest_bf16"].summaries
    assert (reading(output), output.miscompares) == (0, ())


@each("kind", FAULT_KINDS)
def test_an_injected_fault_is_in_the_second_run_of_one_format(kind: Any) -> None:
    for seed in range(20):
        training = Counted()
        output = repeated(Ask(seconds=9.0, inject=kind, inject_seed=seed), training)
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
    training = Counted()
    output = repeated(Ask(seconds=9.0, inject="persistent", inject_seed=3), training)
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
    found = trials(FORMATS, Counted(("gradient", "weight")), 3, 7, said.append)
    assert [(one.kind, one.format) for one in found] == [
        (kind, dtype) for dtype in FORMATS for kind in FAULT_KINDS
    ]
    for one in found:
        hit = 3 if one.kind in ("gradient", "weight") else 0
        assert (one.tried, one.found, one.named) == (3, hit, hit)
        assert (one.masked, one.missed) == (3 - hit, 0)
    assert len(said) == 24
    missed = trials(FORMATS, Counted((), trace=True), 1, 7)
    assert {one.missed for one in missed} == {1}


ABOUT = {
    "gpu": "NVIDIA H200",
    "uuid": "GPU-1",
    "capability": "9.0",
    "library": "torch 2.10",
    "cublas": "12.8.4",
    "multiprocessors": 132,
}


def test_the_hello_says_what_the_bits_depend_on() -> None:
    made: list[str] = []
    ask = Ask(seconds=0.01, inject="weight", inject_seed=5)
    output = loaded(ask, lambda device: made.append(device) or Counted(), ABOUT)
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
    small = Ask(seconds=0.01, device="cpu")  # on a processor the model is tiny
    told = loaded(small, lambda _device: Counted(), {"library": "torch 2.13"}).parameters
    assert (told["device"], told["model"], told["formats"]) == ("cpu", "tiny", ["bf16", "tf32"])
    assert not {"inject", "inject_seed"} & told.keys()


def test_trials_end_with_1_where_one_was_missed() -> None:
    asked = digest_trials.arguments().parse_args(["--device", "cpu", "--trials", "2"])
    for text in ("0", "-1", "1.5", "x", "1000000", "\uff11"):  # trials are a number
        with pytest.raises(SystemExit):
            digest_trials.arguments().parse_args(["--trials", text])
    for trace, status in ((False, 0), (True, 1)):
        said: list[str] = []
        training = Counted((), trace=trace)

        assert (
            digest_trials.try_faults(
                asked, said.append, lambda *_, one=training: one, lambda _device: ABOUT
            )
            == status
        )
        rows = said[said.index("kind format tried found masked missed named-one-bit") + 1 :]
        assert len(rows) == 8
        assert rows[0] == f"activation bf16 2 0 {0 if trace else 2} {2 if trace else 0} 0"


MAPS = """7f00 r-xp 00000000 08:01 1 /usr/lib/libc.so.6
7f10 r-xp 00000000 08:01 2 /opt/nvidia/cublas/lib/libcublasLt.so.12
7f20 r-xp 00000000 08:01 3 /opt/nvidia/cublas/lib/libcublas.so.12
7f30 rw-p 00000000 08:01 3 /opt/nvidia/cublas/lib/libcublas.so.12
"""


def library(*numbers: int, status: int = 0) -> Any:
    """A library that tells its version so."""

    def told(part: int, number: Any) -> int:
        number._obj.value = numbers[part]
        return status

    return SimpleNamespace(cublasGetProperty=told)


@each(
    "text, made, due",
    [
        (MAPS, library(12, 8, 4), "12.8.4"),
        (MAPS, library(12, 8, 4, status=1), "cublasGetProperty failed"),
        (MAPS, library(12, -1, 4), "cublasGetProperty failed"),
        (MAPS.splitlines()[0], library(12, 8, 4), "0 libraries are loaded"),
        (
            MAPS + "7f40 r-xp 00000000 08:01 4 /usr/lib/libcublas.so.13.1.0\n",
            library(12, 8, 4),
            "2 libraries are loaded",
        ),
    ],
)
def test_the_version_of_cublas(tmp_path: Path, text: str, made: Any, due: str) -> None:
    (tmp_path / "maps").write_text(text)
    asked: list[str] = []
    try:
        found = cublas_version(tmp_path / "maps", lambda path: asked.append(path) or made)
    except LoadError as error:
        found = str(error)
    assert due in found
    assert set(asked) <= {"/opt/nvidia/cublas/lib/libcublas.so.12"}
