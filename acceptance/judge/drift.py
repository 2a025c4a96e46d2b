"""Tonight's value of one measurement held against its past: steps, slow slopes, growing noise, and the rate of what only grows. Pure.

Outside on one night is a warning, on two nights running a failure; so are several nights of the last ones that strayed. Where nothing
tells which side is the worse one, a change is remarked and never fails: it may be for the better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from acceptance.judge.measurement import number, quantity
from acceptance.judge.past import Bounds, Counter, Past, basis, date, nights

Kind = Literal["fail", "warn"]
Sort = Literal["step", "slope", "noise", "counter", "unsteady"]
SORTS: tuple[Sort, ...] = ("step", "slope", "noise", "counter", "unsteady")


class Told(NamedTuple):
    """One thing that is to be said: what it does to the outcome, one line, and what sort of drift it is, by which its causes are found."""

    kind: Kind
    text: str
    sort: Sort


class Drifted(msgspec.Struct, frozen=True):
    """What the past says of tonight's value.

    `outside`: beyond a bound, and at the second look too where one was taken. `unsteady`: beyond it at the first look and within at the
    second. `look_again`: a second look, which was not taken yet, could tell whether it was chance.
    """

    findings: tuple[Told, ...] = ()
    outside: bool = False
    unsteady: bool = False
    look_again: bool = False


class _Crossed(NamedTuple):
    sort: Sort
    words: str


def judge(measurement: str, component: str, unit: str, past: Past, value: float, again: float | None = None) -> Drifted:
    """Hold a value, and that of the second look where one was taken, against the past. What is no finite number fails."""
    if not math.isfinite(value):
        told = Told(
            "fail", f"{measurement} on {component} is no finite number that could be held against its past", "step"
        )
        return Drifted((told,), outside=True)
    if past.counter is not None:
        return _counted(f"{measurement} on {component}", unit, past, past.counter, value)
    findings = _noise(f"{measurement} on {component}", unit, past)
    crossed = list(_crossings(past, unit, value))
    if not crossed:
        return Drifted(findings)
    stayed = again is None or not math.isfinite(again) or any(_crossings(past, unit, again))
    second = "" if again is None else f", {quantity(again, unit)} at the second look"
    measured = f"{measurement} on {component}: measured {quantity(value, unit)}{second}"
    told = "; ".join(one.words for one in crossed)
    kind, why = _weight(past, stayed)
    sort: Sort = crossed[0].sort if stayed else "unsteady"
    text = f"{measured}: {told}; {why}; basis: {basis(past, unit)}"
    return Drifted((Told(kind, text, sort), *findings), stayed, not stayed, again is None)


def _crossings(past: Past, unit: str, value: float) -> Iterator[_Crossed]:
    """Every bound that a value is beyond; a slope before the baseline, a step of one night before both."""
    if past.level is not None and past.level.bounds.beyond(value):
        one = past.level
        before = f"the median of {nights(one.nights)} before, {quantity(one.middle, unit)}"
        yield _Crossed("step", _off(value, one.middle, before, one.bounds, unit))
    if past.slope is not None and past.slope.bounds.beyond(value):
        slow = past.slope
        way = f"{quantity(slow.first, unit)} to {quantity(slow.last, unit)} within {slow.days:.0f} days"
        yield _Crossed("slope", f"slowly, from {way} ({nights(slow.nights)}, bound {slow.bounds.words(unit)})")
    if past.accepted is not None and past.accepted.bounds.beyond(value):
        born = past.accepted
        before = f"the baseline of {date(born.day)}, {quantity(born.value, unit)}"
        yield _Crossed("slope" if born.moved else "step", _off(value, born.value, before, born.bounds, unit))


def _off(value: float, middle: float, before: str, bounds: Bounds, unit: str) -> str:
    """How far a value is from what it was, in words."""
    way = "below" if value < middle else "above"
    far = abs(value - middle)
    much = f"{number(100 * far / abs(middle))} %" if middle and unit not in ("count", "degC") else quantity(far, unit)
    return f"{much} {way} {before}, bound {bounds.words(unit)}"


def _weight(past: Past, stayed: bool) -> tuple[Kind, str]:
    """What a night outside, or one that was unsteady, is worth after the nights before."""
    if not past.decides:
        return "warn", "changed, and nothing tells whether for the worse"
    if stayed and past.before:
        return "fail", "the second night running"
    off = past.off + 1
    if off >= past.off_fails:
        return "fail", f"the {_ordinal(off)} night that strays among the last ones"
    if not stayed:
        return "warn", "the second look was within, so it does not stay"
    return "warn", "the first night: the next one like it is a failure"


def _ordinal(count: int) -> str:
    return {2: "second", 3: "third"}.get(count, f"{count}th")


def _noise(where: str, unit: str, past: Past) -> tuple[Told, ...]:
    """A remark about noise that has grown: by itself it proves no loss, so it never fails."""
    grown = past.grown
    if grown is None:
        return ()
    now, before = quantity(grown.now, unit), quantity(grown.before, unit)
    text = f"{where}: its noise has grown: one deviation of the last {nights(grown.nights)} is {now}, of those before {before}"
    return (Told("warn", f"{text}; basis: {basis(past, unit)}", "noise"),)


def _counted(where: str, unit: str, past: Past, counter: Counter, value: float) -> Drifted:
    # A counter that stands lower than it did was set back: what it shows now has come since then.
    back = value < counter.stood
    grown = value if back else value - counter.stood
    if grown > counter.allowed:
        worst = counter.most is not None and grown > counter.most
        repeated = counter.repeats and past.before
        why = "more than may come at once" if worst else "the second night running" if repeated else "the first night"
        since = (
            f"since it was set back from {quantity(counter.stood, unit)}"
            if back
            else f"from {quantity(counter.stood, unit)}"
        )
        told = f"grew by {quantity(grown, unit)} {since} within {_days(counter.days)}, allowed {quantity(counter.allowed, unit)}"
        text = f"{where}: measured {quantity(value, unit)}: {told}; {why}; basis: {basis(past, unit)}"
        return Drifted((Told("fail" if worst or repeated else "warn", text, "counter"),), outside=True)
    return Drifted()


def _days(days: float) -> str:
    return f"{number(round(days, 1))} days" if days >= 1.05 else "a day"
