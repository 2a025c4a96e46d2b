"""One rank of the load of parallel training, with a pipe and a trainer of its own."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from acceptance.core.parts import Gpu
from acceptance.loads import ranks
from acceptance.loads.collective.worker import VariantRank
from acceptance.loads.miscompare import WrongTraining
from acceptance.loads.ranks import REPORTED, Entered
from acceptance.loads.train import parallel_worker
from acceptance.loads.train.parallel_worker import (
    Clock,
    Clocked,
    Deviation,
    Fault,
    TrainerJoined,
    Verified,
    Verify,
)
from acceptance.loads.train.shapes import TINY

JOINED = TrainerJoined(1 << 30, "library", "GPU-1", "bf16")
CLOCKED = Clocked(3, 1.0, 0.8, 0.2, 0, 0, "")
CLOCK = Clock("tp", 4, TINY, 2, 1.0, "bf16")


class Pipe:
    """Gives what the parent says, and keeps what the rank says."""

    def __init__(self, *tasks: Any) -> None:
        messages = [("start", one) for task in tasks for one in (task, None)]
        self._messages = iter([*messages, ("start", None)])
        self.said: list[tuple[str, Any]] = []

    def recv(self) -> Any:
        return next(self._messages)

    def send(self, message: tuple[str, Any]) -> None:
        self.said.append(message)


class Trainer:
    """Finds so many deviations in each verification, and keeps the faults it was asked for."""

    def __init__(self, deviations: int) -> None:
        self.joined, self.left, self.faults = JOINED, False, list[Fault | None]()
        self._found = tuple(
            Deviation("parallel_weights", 3, f"t{one}", 2.0, 1.0) for one in range(deviations)
        )

    def verify(self, task: Verify, fault: Fault | None) -> Verified:
        self.faults.append(fault)
        return Verified((1.0,), (1.0,), 3, 1, (0.0, 2.0), "", self._found)

    def clock(self, task: Clock) -> Clocked:
        assert task == CLOCK
        return CLOCKED

    def leave(self) -> None:
        self.left = True


def worked(trainer: Trainer, *tasks: Any, inject: Fault | None = None) -> list[tuple[str, Any]]:
    pipe: Any = Pipe(*tasks)
    rank = VariantRank(1, "p2p_off", Path("/"))
    parallel_worker.work(rank, 2, pipe, lambda *_: trainer, inject)
    said: list[tuple[str, Any]] = pipe.said
    return said


def test_a_rank_says_when_it_is_ready_enters_and_is_done() -> None:
    trainer = Trainer(0)
    said = worked(trainer, Verify("ddp", 1), CLOCK)
    assert [kind for kind, _ in said] == [
        *("joined", "ready", "entered", "done", "ready", "entered", "done", "left"),
    ]
    assert said[0][1] == JOINED
    assert said[2][1] == Entered()
    assert said[-2][1] == CLOCKED
    assert trainer.left


def test_a_fault_is_made_in_the_first_task_alone() -> None:
    trainer = Trainer(0)
    worked(trainer, Verify("ddp", 1), Verify("tp", 4), inject="drop")
    assert trainer.faults == ["drop", None]


def test_the_first_deviations_of_all_verifications_are_reported() -> None:
    said = worked(Trainer(REPORTED - 3), Verify("ddp", 1), Verify("tp", 4), Verify("zero2", 1))
    told = [value for kind, value in said if kind == "miscompare"]
    assert [one.way for one in told] == ["ddp"] * (REPORTED - 3) + ["tp"] * 3
    assert all(isinstance(one, WrongTraining) for one in told)
    first = told[0]
    assert (first.component, first.arm, first.tensor) == (Gpu(1), "p2p_off", "t0")
    assert (first.difference, first.bound, first.accumulation, first.step) == ("2", 1.0, 1, 3)


def test_a_rank_that_is_to_die_or_to_hang_does_so_before_it_enters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(ranks.os, "kill", lambda pid, number: ended.append(number))
    monkeypatch.setattr(ranks.time, "sleep", ended.append)
    for fault, what in (("die", signal.SIGKILL), ("hang", 3600)):
        ended.clear()
        worked(Trainer(0), Verify("ddp", 1), inject=fault)  # type: ignore[arg-type]
        assert ended == [what]
