"""The repeats of a training run, their comparison, and faults on purpose; independent of torch."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, get_args

from acceptance.loads.contract import OWN
from acceptance.loads.miscompare import REPEATS_DIFFER, DifferingRun, DigestFormat
from acceptance.loads.protocol import Output
from acceptance.loads.train import digest_log
from acceptance.loads.train.digest_contract import (
    COLUMNS,
    LEAST_REPEATS,
    LOG,
    TABLE,
    Ask,
    FaultKind,
)
from acceptance.loads.train.digest_log import RunDigests

FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)
PERSISTENT = "persistent"  # the same bit of a gradient in every repeat, the first among them


@dataclass(frozen=True, slots=True)
class Fault:
    """One bit that is flipped on purpose, after the forward pass of a step or after its update.

    `element` is a large random number, which chooses one of all elements of the kind; so is `bit`,
    of the middle half of the element's bits.
    """

    kind: FaultKind
    step: int
    element: int
    bit: int


class Training(Protocol):
    """A training run that can be repeated; `digest_training.DigestTraining` is one on a GPU."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the parameters, in the order of the stamps."""

    @property
    def steps(self) -> int:
        """The steps of the run."""

    def run(self, dtype: DigestFormat, fault: Fault | None) -> Sequence[Sequence[int]]:
        """Train from the beginning; returns the stamps as numbers, as `digest_log.due_rows`."""

    def remember(self) -> None:
        """Keep weights and moments of the last run."""

    def as_remembered(self) -> bool:
        """Whether the weights and moments of the last run have the bits of the kept ones."""


def draw(kind: FaultKind, steps: int, chance: random.Random) -> Fault:
    """A fault of this kind, at any step."""
    return Fault(kind, chance.randrange(steps), chance.getrandbits(48), chance.getrandbits(16))


def element_of(sizes: Sequence[int], number: int) -> tuple[int, int]:
    """The tensor and the element that a large random number chooses, each element alike."""
    ends = list(accumulate(sizes))
    place = number % ends[-1]
    tensor = bisect_right(ends, place)
    return tensor, place - ends[tensor] + sizes[tensor]


def bit_of(width: int, number: int) -> int:
    """The bit that a random number chooses, of the middle half of an element's."""
    return width // 4 + number % (width // 2)


@dataclass(slots=True)
class _State:
    """What is known of one format: its first run, how often it ran, and its latest time."""

    first: RunDigests
    repeats: int
    seconds: float


class DigestWorker:
    """Repeats the run of every format until the time is over, and compares with the first."""

    def __init__(
        self,
        ask: Ask,
        formats: Sequence[DigestFormat],
        training: Training,
        output: Output,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask, self._formats = ask, formats
        self._training, self._output = training, output
        self._clock = clock
        self._differing = 0
        chance = random.Random(ask.inject_seed)
        self._faulty = chance.choice(formats)
        kind = ask.inject
        self._fault = None
        if kind is not None:
            of_kind: FaultKind = "gradient" if kind == "persistent" else kind
            self._fault = draw(of_kind, training.steps, chance)

    def run(self) -> None:
        """Run, repeat until the time is over, at least once, and report."""
        states: dict[DigestFormat, _State] = {}
        began_s = self._clock()
        repeat = 0
        spent_s, whole_s = 0.0, self._ask.seconds
        while spent_s < whole_s or repeat < LEAST_REPEATS:
            for dtype in self._formats:
                self._once(dtype, repeat, states)
            repeat += 1
            spent_s = self._clock() - began_s
            self._output.progress(round(min(spent_s, whole_s), 1), whole_s)
        self._report(states)
        self._output.note(f"{repeat} runs of each format in {spent_s:.1f} s")

    def _once(self, dtype: DigestFormat, repeat: int, states: dict[DigestFormat, _State]) -> None:
        training, began_s = self._training, self._clock()
        found = digest_log.from_numbers(
            training.tensors, training.steps, training.run(dtype, self._fault_in(dtype, repeat))
        )
        spent_s = self._clock() - began_s
        state = states.setdefault(dtype, _State(found, 0, 0.0))
        state.repeats, state.seconds = state.repeats + 1, spent_s
        other = digest_log.difference(state.first, found)
        if other is not None:
            self._differing += 1
            self._output.miscompare(
                DifferingRun(
                    component=OWN,
                    check="digest_repeat",
                    format=dtype,
                    repeat=repeat,
                    step=other.step,
                    part=other.part,
                    tensor=other.tensor,
                    kind=other.kind,
                    bit=other.bit,
                    digests=other.digests,
                )
            )

    def _fault_in(self, dtype: DigestFormat, repeat: int) -> Fault | None:
        """The fault of this run: of one repeat, or of each where it is persistent."""
        due = repeat == 1 or self._ask.inject == PERSISTENT
        return self._fault if due and dtype == self._faulty else None

    def _report(self, states: dict[DigestFormat, _State]) -> None:
        rows = []
        for dtype, state in states.items():
            self._output.log(LOG.format(dtype), OWN, state.first.text())
            counts = state.first.steps, state.repeats
            rows.append((dtype, *counts, *state.first.summaries, round(state.seconds, 4)))
        self._output.table(TABLE, COLUMNS, rows)
        self._output.reading(REPEATS_DIFFER, "count", OWN, self._differing)
