"""The smallest fault of one measurement that is caught for certain: drawn runs are folded, and the
fault is halved upon.

Pure.

For certain is in 99 of 100 drawn runs, noise included. The plan is cut to the one measurement, and
only its own limit is left, so that nothing else can catch the fault in its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
from faults import Change

from acceptance.core.finding import Within
from acceptance.core.limit import Limit
from acceptance.core.plan import Due, PlannedCheck
from selftest import drawn_runs
from selftest.drawn_runs import Machine, draw

CERTAIN = 0.99
RATES = (
    "TFLOP/s",
    "GFLOP/s",
    "GB/s",
    "GiB",
    "ratio",
    "MT/s",
    "Mbit/s",
    "IOPS",
)  # of these a share is lost
PER_MILLE = tuple(step / 1000 for step in range(1, 1001))
COUNTS = (*(float(count) for count in range(1, 1025)), 1e4, 1e5, 1e6)
DEGREES = tuple(step / 2 for step in range(1, 201))
SECONDS = tuple(step / 1000 for step in range(1, 1001))


@dataclass(frozen=True, slots=True)
class Subject:
    """One limited measurement of one component, in one check of one machine, and what the fault
    does to it: `less` or more.
    """

    machine: Machine
    check: str
    due: Due
    less: bool

    @property
    def steps(self) -> tuple[float, ...]:
        """The faults that are tried, from the smallest: shares of a rate; whole counts; half
        degrees; milliseconds.
        """
        if self.due.unit in RATES:
            return PER_MILLE
        return {"degC": DEGREES, "s": SECONDS}.get(self.due.unit, COUNTS)

    def fault(self, size: float) -> Change:
        """The fault of this size, on this component."""

        def change(_check: str, due: Due, value: float) -> float:
            if due.component != self.due.component or (
                due.measurement == "p2p_staged" != self.due.measurement
            ):
                return value
            return (
                value * (1 - size)
                if self.due.unit in RATES
                else value - size
                if self.less
                else value + size
            )

        return change


@dataclass(frozen=True, slots=True)
class Caught:
    """The smallest fault that fails, and that is remarked at least; None where no fault of those
    that are tried does.
    """

    subject: Subject
    fails: float | None
    warns: float | None


def subjects(machine: Machine) -> Iterator[Subject]:
    """Every limited measurement of a machine, once, on its last component but
    one: no corner is special.
    """
    for check in machine.plan.checks:
        groups: dict[str, list[Due]] = {}
        for due in check.due:
            groups.setdefault(due.measurement, []).append(due)
        for dues in groups.values():
            due = dues[-2] if len(dues) > 1 else dues[0]
            if due.limit is not None and due.limit.low is not None:
                yield Subject(machine, check.id, due, less=True)
            if due.limit is not None and due.limit.high is not None and due.unit not in RATES:
                yield Subject(machine, check.id, due, less=False)


def cut(machine: Machine, check_id: str, due: Due) -> Machine:
    """This machine with a plan of one measurement of one component, and of what it is reckoned
    from, which has no limit here.
    """
    base = {due.measurement.replace("_ratio", "")} | (
        {"p2p_write", "p2p_staged"} if due.measurement == "p2p_gain" else set()
    )
    if due.measurement == "burn_temperature_spread":
        base = {due.measurement}
    (check,) = (check for check in machine.plan.checks if check.id == check_id)
    reckoned = "_ratio" in due.measurement or due.measurement in (
        "p2p_gain",
        "burn_temperature_spread",
    )
    kept = [due]
    for other in check.due:
        same_way = due.measurement != "p2p_gain" or other.component == due.component
        if reckoned and other is not due and other.measurement in base and same_way:
            kept.append(
                msgspec.structs.replace(
                    other.without(Within), unlimited="only what is reckoned from it is judged"
                )
            )
    planned = PlannedCheck(check.id, check.title, check.session, check.seconds, tuple(kept))
    plan = msgspec.structs.replace(machine.plan, checks=(planned,), gaps=(), waivers=())
    return replace(machine, plan=plan)


Known = dict[tuple[object, ...], tuple[float | None, float | None]]


def smallest(subject: Subject, runs: int, seed: int, known: Known) -> Caught:
    """The smallest fault of a subject that fails in 99 of 100 drawn runs, and that is at least
    remarked in as many.

    What is judged by the same numbers is reckoned once: `known` keeps it.
    """
    small = cut(subject.machine, subject.check, subject.due)
    limit = subject.due.limit
    assert limit is not None
    numbers = _numbers(small, subject, limit)
    if numbers not in known:
        fails = warns = first(
            subject.steps, lambda size: certain(small, subject, size, ("fail",), runs, seed)
        )
        if limit.warn_low is not None or limit.warn_high is not None:
            warns = first(
                subject.steps,
                lambda size: certain(small, subject, size, ("fail", "warn"), runs, seed),
            )
        known[numbers] = (fails, warns)
    return Caught(subject, *known[numbers])


def _numbers(small: Machine, subject: Subject, limit: Limit) -> tuple[object, ...]:
    """All that a search depends on: bounds, centres and deviations, of rates as
    shares of the rate.
    """
    name, drawn = subject.due.measurement, drawn_runs.figures(small)
    share, ratio = subject.due.unit in RATES, "_ratio" in subject.due.measurement
    scale = abs(drawn[0][2]) if share and not ratio else 1.0
    bounds = (limit.low, limit.warn_low, limit.warn_high, limit.high)
    moved = tuple(
        (
            key[1] == name,
            0.0 if ratio else round(middle / scale, 6),
            round(deviation / (abs(middle) if share else 1.0), 6),
        )
        for key, _, middle, deviation in drawn
    )
    return (
        subject.steps,
        subject.less,
        tuple(one if one is None else round(one / scale, 6) for one in bounds),
        moved,
    )


def certain(
    small: Machine, subject: Subject, size: float, kinds: tuple[str, ...], runs: int, seed: int
) -> bool:
    """Whether the fault of this size is found in 99 of 100 drawn runs; the draws are the same
    for every size.
    """
    dice, missed = random.Random(seed), 0
    if not any(moved for _, _, _, moved in drawn_runs.figures(small)):
        runs = 1  # nothing is drawn: every run is the same
    for _ in range(runs):
        verdict = drawn_runs.judged(small, draw(small, dice, subject.fault(size)))
        found = any(one.component == subject.due.component for one in verdict.of_kind(*kinds))
        missed += not (found and (verdict.verdict == "FAIL" or "warn" in kinds))
        if missed > (1 - CERTAIN) * runs:
            return False
    return True


def first(steps: Sequence[float], holds: Callable[[float], bool]) -> float | None:
    """The first step from which on something holds, by halving; None where it
    does not hold for the last.
    """
    if not holds(steps[-1]):
        return None
    low, high = -1, len(steps) - 1  # it does not hold at low, and holds at high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(steps[middle]):
            high = middle
        else:
            low = middle
    return steps[high]


def unable(machine: Machine) -> Iterator[str]:
    """What is wrong with a machine's measurements as judged: limits that no fault breaks, and
    values whose absence passes.
    """
    for check in machine.plan.checks:
        for due in {one.measurement: one for one in check.due}.values():
            small = cut(machine, check.id, due)
            where = f"{machine.name}: {check.id}, {due.measurement}"
            values = draw(small, random.Random(0))
            values[check.id, due.measurement, due.component] = None
            if drawn_runs.judged(small, values).verdict == "PASS":
                yield f"{where}: a run without it passes"
    for subject in subjects(machine):
        small = cut(machine, subject.check, subject.due)
        if not certain(small, subject, subject.steps[-1], ("fail",), 3, 0):
            yield (
                f"{machine.name}: {subject.check}, {subject.due.measurement}: no fault of it fails"
            )
