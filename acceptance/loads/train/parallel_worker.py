"""One rank of the load of parallel training: it verifies and times what it is sent. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Literal, Protocol

from acceptance.core.parts import Gpu
from acceptance.loads.collective.worker import Joined, VariantRank
from acceptance.loads.miscompare import (
    CollectiveVariant,
    ParallelCheck,
    WrongTraining,
)
from acceptance.loads.ranks import TaskPipe
from acceptance.loads.train.parallel_contract import Fault
from acceptance.loads.train.parallel_values import ParallelWay
from acceptance.loads.train.shapes import ModelShape

TrainedFormat = Literal["bf16", "f16"]
LEAST_STEPS, MOST_STEPS = 3, 200


@dataclass(frozen=True, slots=True)
class Verify:
    """Train the small model one way, and compare it with one card's training."""

    way: ParallelWay
    accumulation: int

    def __str__(self) -> str:
        return f"verifying {named(self.way, self.accumulation)}"


@dataclass(frozen=True, slots=True)
class Clock:
    """Train a model one way, for `seconds` and LEAST_STEPS steps at least.

    `batch` is that of one card in each accumulated batch, `dtype` the format of the products, one
    for all ranks. "alone" is each card by itself, without communication.
    """

    way: ParallelWay | Literal["alone"]
    accumulation: int
    shape: ModelShape
    batch: int
    seconds: float
    dtype: TrainedFormat

    def __str__(self) -> str:
        return f"timing {named(self.way, self.accumulation)}"


Task = Verify | Clock


def named(way: str, accumulation: int) -> str:
    """A way and how many batches it accumulates, for people."""
    return f"{way} with accumulation {accumulation}"


@dataclass(frozen=True, slots=True)
class TrainerJoined(Joined):
    """A rank whose device works, and the format that it trains in."""

    dtype: TrainedFormat


@dataclass(frozen=True, slots=True)
class Deviation:
    """What differs from one card's training by more than its bound, or is no number."""

    check: ParallelCheck
    step: int
    tensor: str
    difference: float
    bound: float


@dataclass(frozen=True, slots=True)
class Verified:
    """The small model's training at one rank.

    `losses` are its own of each step, `alone` those of one card with the whole batch. `nearest` is
    the largest difference as a share of its bound, of gradients and of weights. `digest` is of the
    final weights, empty where a rank does not have them whole.
    """

    losses: tuple[float, ...]
    alone: tuple[float, ...]
    gradients: int
    weights: int
    nearest: tuple[float, float]
    digest: str
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True)
class Clocked:
    """A timed training at one rank.

    `step_s` is the mean of `steps` steps, `passes_s` and `optimizer_s` are medians of their parts:
    forward with backward, and the optimizer. `infinite` counts losses that are no finite numbers.
    """

    steps: int
    step_s: float
    passes_s: float
    optimizer_s: float
    peak_bytes: int
    infinite: int
    digest: str


class Trainer(Protocol):
    """A rank's device and library. All meet in the first task: joining needs no other."""

    @property
    def joined(self) -> TrainerJoined:
        """The device, the library, and what room there is."""

    def verify(self, task: Verify, fault: Fault | None) -> Verified:
        """Train the small model with all others, and compare it with one card's training."""

    def clock(self, task: Clock) -> Clocked:
        """Train a model, and time its steps."""

    def leave(self) -> None:
        """Leave the group, together with all others."""


# What a rank calls to begin: its number, how many they are, and a folder that all of them see.
Join = Callable[[int, int, Path], Trainer]


def steps_for(seconds: float, one_s: float) -> int:
    """How many steps are timed, where the slowest rank's first ones took `one_s`."""
    return max(LEAST_STEPS, min(MOST_STEPS, math.ceil(seconds / max(one_s, 1e-9))))


def compare(
    check: ParallelCheck, step: int, tensor: str, difference: float, bound: float
) -> Deviation | None:
    """What is wrong with a difference; None where it lies within its bound."""
    # Not `difference > bound`: what is no number is wrong.
    return None if difference <= bound else Deviation(check, step, tensor, difference, bound)


def work(
    rank: VariantRank, ranks: int, connection: Connection, join: Join, inject: Fault | None
) -> None:
    """The rank's whole sequence, until it is told to leave; a fault is made in its first task."""
    trainer, pipe = join(rank.number, ranks, rank.folder), TaskPipe(connection)
    connection.send(("joined", trainer.joined))
    for task in pipe.tasks():
        fault, inject = inject, None
        pipe.enter(fault)
        done = trainer.clock(task) if isinstance(task, Clock) else trainer.verify(task, fault)
        for one in done.deviations if isinstance(done, Verified) else ():
            pipe.report(wrong(one, task, rank.variant, rank.number))
        connection.send(("done", done))
    trainer.leave()
    connection.send(("left", None))


def wrong(found: Deviation, task: Task, variant: CollectiveVariant, rank: int) -> WrongTraining:
    """The wrong result of a deviation at a rank."""
    return WrongTraining(
        component=Gpu(rank),
        check=found.check,
        way=task.way,
        arm=variant,
        accumulation=task.accumulation,
        step=found.step,
        tensor=found.tensor,
        difference=f"{found.difference:.6g}",
        bound=found.bound if math.isfinite(found.bound) else 0.0,
    )
