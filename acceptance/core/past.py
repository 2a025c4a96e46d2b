"""What earlier nights say a value should be, and how it is judged by them. Pure.

It is part of the plan. Values, levels, bounds and deviations are in the measurement's unit. Bounds
are allowed values. Only the bound on the worse side is set; both, if the worse side is unknown.

A value outside on one night is a warning, on two consecutive nights a failure; so are several
drifted nights among the last ones. If it is unknown which side is worse, a change is a warning and
never fails: it may be for the better.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from acceptance.core.language import ENGLISH
from acceptance.core.limit import number, quantity
from acceptance.core.usual import Bounds

DriftSeverity = Literal["fail", "warn"]
# Step: beyond the variation from night to night. Slope: a level that moved too slowly to show from
# one night to the next. Noise: values scatter more than before. Counter: it grew too fast. Changed:
# a step, with the worse side unknown. Unsteady: a step or slope that the repeat did not show.
DriftKind = Literal["step", "slope", "noise", "counter", "changed", "unsteady"]
_FEW = "too few nights came before for more than a warning"
_UNTOLD = "nothing tells whether this is for the worse"
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """The level of the last nights.

    It is their median, their number, one deviation from night to night, and the number of
    deviations allowed.
    """

    middle: float
    nights: int
    deviation: float
    factor: float
    bounds: Bounds


class FirstNights(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first nights: their median, their number, and the `day` of the first.

    `baseline`: the first of them is the run that accepted the machine. `moved`: the median of the
    last nights lies beyond these bounds.
    """

    middle: float
    nights: int
    day: float
    bounds: Bounds
    baseline: bool = False
    moved: bool = False


class Slope(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slow fall or rise over some nights.

    `first` and `last` are the levels of their first and last third, `days` the days between the
    two.
    """

    first: float
    last: float
    days: float
    nights: int
    bounds: Bounds


class NoiseGrowth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Noise that has grown.

    `before` is one deviation of the nights before the last ones, `now` that of the last ones,
    `nights` in number.
    """

    before: float
    now: float
    nights: int


class CounterReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A counter that only grows.

    `stood` is its value `days` before tonight, and `allowed` its allowed growth since. Above `most`
    it fails at once. `repeats` says that two consecutive nights above `allowed` are a failure, and
    so are several of the last.
    """

    stood: float
    days: float
    allowed: float
    basis: str
    most: float | None = None
    repeats: bool = False


class DriftFinding(msgspec.Struct, frozen=True):
    """One finding of drift, as one line.

    `kind` is its effect on the outcome; `what` is the kind of drift, which selects its causes.
    """

    kind: DriftSeverity
    what: DriftKind
    text: str


class DriftJudgement(msgspec.Struct, frozen=True):
    """Tonight's value compared with its reference.

    `outside`: beyond a bound, in the repeat too if there was one. `unsteady`: beyond a bound at
    first, and within it in the repeat. `look_again`: not repeated yet, and a repeat could show
    whether it was chance.
    """

    findings: tuple[DriftFinding, ...] = ()
    outside: bool = False
    unsteady: bool = False
    look_again: bool = False


class _Crossed(NamedTuple):
    what: DriftKind
    words: str


class Past(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="criterion", tag="past"):
    """The reference of one measurement of one part, from before this run.

    `decides`: the worse side is known; without it nothing fails. `before`: the previous night was
    outside. `off` is how many of the last `off_of` nights, without tonight, were outside or
    unsteady; it fails when tonight makes it `off_fails`. `rebased`: the machine was accepted under
    other circumstances, so that the baseline's value is not used. `few` are nights too few for a
    spread of their own, with the bounds within which two runs may lie: beyond them is a warning.
    """

    decides: bool
    off_fails: int
    off_of: int
    off: int = 0
    before: bool = False
    level: Level | None = None
    first: FirstNights | None = None
    slope: Slope | None = None
    grown: NoiseGrowth | None = None
    counter: CounterReference | None = None
    rebased: bool = False
    few: FirstNights | None = None

    def basis(self, unit: str) -> str:
        """The reference in words."""
        if self.counter is not None:
            return self.counter.basis
        parts = []
        if self.level is not None:
            one = self.level
            text = (
                f", one deviation {quantity(one.deviation, unit)}, {one.factor:g} of it allowed"
                if one.deviation
                else ""
            )
            parts.append(f"median of {nights(one.nights)} {quantity(one.middle, unit)}{text}")
        first = self.first or self.few
        if first is not None:
            parts.append(f"{describe_first_nights(first)} {quantity(first.middle, unit)}")
        if self.rebased:
            parts.append("re-based: the baseline was taken with another image, station or driver")
        return "; ".join(parts)

    def judge(
        self, where: str, unit: str, value: float, repeated: float | None = None
    ) -> DriftJudgement:
        """Compare a value, and its repeat if there is one, with the reference.

        `where` names the value: `copy_h2d on gpu0`. A value that is not finite fails.
        """
        if not math.isfinite(value):
            words = f"{where} is no finite number that could be held against its past"
            return DriftJudgement((DriftFinding("fail", "step", words),), outside=True)
        if self.counter is not None:
            return _judge_counter(where, unit, self, self.counter, value)
        noise = _noise(where, unit, self)
        crossed = list(_crossings(self, unit, value))
        if not crossed:
            return DriftJudgement((*_few(where, unit, self, value), *noise))
        stayed = (
            repeated is None or not math.isfinite(repeated) or any(_crossings(self, unit, repeated))
        )
        kind, why = _weight(self, stayed)
        second = "" if repeated is None else f", {quantity(repeated, unit)} at the second look"
        words = "; ".join(one.words for one in crossed)
        text = (
            f"{where}: measured {quantity(value, unit)}{second}: {words}; {why}; basis: "
            f"{self.basis(unit)}"
        )
        return DriftJudgement(
            (DriftFinding(kind, _what(self, crossed[0], stayed), text), *noise),
            stayed,
            not stayed,
            repeated is None,
        )


def date(day: float) -> str:
    """The date of a day counted from 1970-01-01."""
    return datetime.date.fromordinal(_EPOCH + math.floor(day)).isoformat()


def describe_first_nights(first: FirstNights) -> str:
    """The first nights in words."""
    named = (
        f"baseline of {date(first.day)}"
        if first.baseline
        else f"first {nights(first.nights)} from {date(first.day)} on"
    )
    return (
        f"{named} and {nights(first.nights - 1)} after it"
        if first.baseline and first.nights > 1
        else named
    )


def nights(count: int) -> str:
    """A number of nights in words."""
    return ENGLISH.ngettext("{n} night", "{n} nights", count)


def _what(past: Past, crossed: _Crossed, stayed: bool) -> DriftKind:
    if not past.decides:
        return "changed"
    return crossed.what if stayed else "unsteady"


def _crossings(past: Past, unit: str, value: float) -> Iterator[_Crossed]:
    """Every bound that the value exceeds, that of the last nights first."""
    if past.level is not None and past.level.bounds.beyond(value):
        level = past.level
        before = f"the median of {nights(level.nights)} before, {quantity(level.middle, unit)}"
        yield _Crossed("step", _deviation_text(value, level.middle, before, level.bounds, unit))
    if past.slope is not None and past.slope.bounds.beyond(value):
        slope = past.slope
        way = (
            f"from {quantity(slope.first, unit)} to {quantity(slope.last, unit)} within "
            f"{slope.days:.0f} days"
        )
        text = f"its level went {way} ({nights(slope.nights)}), bound {slope.bounds.words(unit)}"
        yield _Crossed("slope", text)
    if past.first is not None and past.first.bounds.beyond(value):
        first = past.first
        yield _Crossed("slope" if first.moved else "step", _from_first(first, unit, value))


def _from_first(first: FirstNights, unit: str, value: float) -> str:
    """The distance of a value from the first nights, in words."""
    before = f"the {describe_first_nights(first)}, {quantity(first.middle, unit)}"
    return _deviation_text(value, first.middle, before, first.bounds, unit)


def _deviation_text(value: float, middle: float, before: str, bounds: Bounds, unit: str) -> str:
    """The distance of a value from its former level, in words."""
    far = abs(value - middle)
    share = middle and unit not in ("count", "degC", "s")
    much = f"{number(round(100 * far / abs(middle), 1))} %" if share else quantity(far, unit)
    return f"{much} {'below' if value < middle else 'above'} {before}, bound {bounds.words(unit)}"


def _weight(past: Past, stayed: bool) -> tuple[DriftSeverity, str]:
    """The severity of a value outside or unsteady, given the nights before, and its reason."""
    if not past.decides:
        return "warn", _UNTOLD
    if stayed and past.before:
        return "fail", "the second night running"
    off = past.off + 1
    if off >= past.off_fails:
        return "fail", f"{nights(off)} of the last {past.off_of} strayed, this one included"
    if not stayed:
        return "warn", "the second look was within"
    return "warn", "the first night: another one like it, and it fails"


def _few(where: str, unit: str, past: Past, value: float) -> tuple[DriftFinding, ...]:
    """A warning where two runs would not be called the same; by chance alone it never fails."""
    if past.few is None or not past.few.bounds.beyond(value):
        return ()
    text = (
        f"{where}: measured {quantity(value, unit)}: {_from_first(past.few, unit, value)}; "
        f"{_FEW if past.decides else _UNTOLD}; basis: {past.basis(unit)}"
    )
    return (DriftFinding("warn", "step" if past.decides else "changed", text),)


def _noise(where: str, unit: str, past: Past) -> tuple[DriftFinding, ...]:
    """A warning if the noise has grown: by itself that proves no loss, so it never fails."""
    grown = past.grown
    if grown is None:
        return ()
    now, before = quantity(grown.now, unit), quantity(grown.before, unit)
    text = f"one deviation of the last {nights(grown.nights)} is {now}, and was {before} before"
    return (
        DriftFinding(
            "warn", "noise", f"{where}: its noise has grown: {text}; basis: {past.basis(unit)}"
        ),
    )


def _judge_counter(
    where: str, unit: str, past: Past, counter: CounterReference, value: float
) -> DriftJudgement:
    # A counter below its former value was reset: its present value is the growth since.
    back = value < counter.stood
    grown = value if back else value - counter.stood
    if grown <= counter.allowed:
        return DriftJudgement()
    at_once = counter.most is not None and grown > counter.most
    off = past.off + 1
    again = counter.repeats and (past.before or off >= past.off_fails)
    stood = quantity(counter.stood, unit)
    words = (
        f"grew by {quantity(grown, unit)} within {_days(counter.days)}, "
        f"{f'set back from {stood}' if back else f'from {stood}'}"
    )
    bounds = f"allowed {quantity(counter.allowed, unit)}"
    if counter.most is not None:
        bounds += f", fails above {quantity(counter.most, unit)}"
    strayed = (
        "the second night running"
        if past.before
        else f"{nights(off)} of the last {past.off_of} strayed"
    )
    running = f"; {strayed}" if again else ""
    text = (
        f"{where}: measured {quantity(value, unit)}: {words}, {bounds}{running}; basis: "
        f"{past.basis(unit)}"
    )
    return DriftJudgement(
        (DriftFinding("fail" if at_once or again else "warn", "counter", text),), outside=True
    )


def _days(days: float) -> str:
    text = number(round(days, 1))
    return "1 day" if text == "1" else f"{text} days"
