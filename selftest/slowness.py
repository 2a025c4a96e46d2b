"""How much of slow GPUs is caught: machines whose GPU lost so many per cent of its rate, by what it
is held against.

Pure.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
from faults import Change

from acceptance.core.finding import Within
from acceptance.core.parts import Gpu
from acceptance.core.plan import Due, PlannedCheck
from selftest import drawn_runs
from selftest.drawn_runs import Machine, draw, named

PERCENTS = (0, 3, 5, 10, 25)
CHECKS = ("compute.gemm_together", "together.burn", "burn.gpu_burn[tensor]")
PAST = "Held against its own nights before: see the simulated years (`python -m selftest.year`)."


@dataclass(frozen=True, slots=True)
class Share:
    """What became of the drawn runs with a GPU that is so slow: shares that fail, that are
    remarked only, and that are missed.
    """

    basis: str
    percent: int
    fails: float
    warns: float
    missed: float


@dataclass(frozen=True, slots=True)
class Basis:
    """What a slow GPU is held against: the machine, and which of its measurements count."""

    words: str
    machine: str
    ratios: bool
    later: bool = False  # slow from the second lap of the burn on only

    def counts(self, due: Due) -> bool:
        """Whether this measurement decides here; all others are drawn and not judged."""
        if self.later:
            return due.measurement.endswith("_kept")
        return "_ratio" in due.measurement if self.ratios else due.unit == "TFLOP/s"


BASES = (
    Basis("one H200 alone, its sheet", "1xh200", ratios=False),
    Basis("one RTX 4090 alone, its sheet", "4090-7950x", ratios=False),
    Basis("one of two RTX 4090, beside the other", "2x4090", ratios=True),
    Basis("one of eight H200, beside the others", "8xh200", ratios=True),
    Basis(
        "slow from the second lap of the burn on, against its first",
        "1xh200",
        ratios=False,
        later=True,
    ),
)


def caught_slow(
    runs: int = 200, seed: int = 1, percents: Sequence[int] = PERCENTS
) -> tuple[Share, ...]:
    """For each basis and percentage what becomes of so many drawn runs, in which gpu0 is slow in
    every product of matrices.
    """
    return tuple(_share(basis, percent, runs, seed) for basis in BASES for percent in percents)


def _share(basis: Basis, percent: int, runs: int, seed: int) -> Share:
    small, dice = _cut(named(basis.machine), basis), random.Random(seed)
    fails = warns = 0
    for _ in range(runs):
        verdict = drawn_runs.judged(small, draw(small, dice, _slow(basis, percent)))
        fails += verdict.verdict == "FAIL"
        warns += verdict.verdict == "PASS" and bool(verdict.of_kind("warn"))
    return Share(basis.words, percent, fails / runs, warns / runs, (runs - fails - warns) / runs)


def _slow(basis: Basis, percent: int) -> Change:
    def change(_check: str, due: Due, value: float) -> float:
        slowed = due.measurement.endswith("_kept") if basis.later else due.unit == "TFLOP/s"
        return value * (1 - percent / 100) if slowed and due.component == Gpu(0) else value

    return change


def _cut(machine: Machine, basis: Basis) -> Machine:
    plan = msgspec.structs.replace(
        machine.plan, checks=tuple(_checks(machine, basis)), gaps=(), waivers=()
    )
    return replace(machine, plan=plan)


def _checks(machine: Machine, basis: Basis) -> Iterator[PlannedCheck]:
    for check in machine.plan.checks:
        kept = []
        for due in check.due if check.id in CHECKS else ():
            if basis.counts(due):
                kept.append(due)
            elif basis.ratios and due.unit == "TFLOP/s":
                kept.append(
                    msgspec.structs.replace(
                        due.without(Within), unlimited="only siblings are compared here"
                    )
                )
        if kept:
            yield PlannedCheck(check.id, check.title, check.session, check.seconds, tuple(kept))
