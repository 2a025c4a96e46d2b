"""The reference of one measurement: what earlier nights say its value should be. Kept in the plan.
Pure.

Values, levels, bounds and deviations are in the measurement's unit. Bounds are allowed values; only
those on the worse side are there, both where nothing tells which side that is.
"""

from __future__ import annotations

import datetime
import math

import msgspec

from acceptance.core.limit import number, quantity

_EPOCH = datetime.date(1970, 1, 1).toordinal()


class ReferenceBounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lowest and the highest value that are within; at least one of them is there."""

    low: float | None = None
    high: float | None = None

    def beyond(self, value: float) -> bool:
        """Whether a value is outside. NaN is, because no comparison with it is true."""
        return not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        )

    def words(self, unit: str) -> str:
        """As people read it: `>= 5 W`."""
        if self.low is not None and self.high is not None:
            return f"{number(self.low)} .. {quantity(self.high, unit)}"
        return (
            f">= {quantity(self.low, unit)}"
            if self.low is not None
            else f"<= {quantity(self.high or 0.0, unit)}"
        )


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """The own nights before: their median, how many they are, one deviation from night to night,
    and how many of it are allowed.
    """

    middle: float
    nights: int
    deviation: float
    factor: float
    bounds: ReferenceBounds


class FirstNights(msgspec.Struct, frozen=True, omit_defaults=True):
    """How it began: the median of the first nights, from which `day` on, and how many they are.

    `baseline`: the first of them is the run that accepted the machine. `moved`: the median of the
    last nights lies beyond these bounds.
    """

    middle: float
    nights: int
    day: float
    bounds: ReferenceBounds
    baseline: bool = False
    moved: bool = False


class Slope(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slow way down, or up: the level at the first and at the last third of so many nights,
    and the days between the two.
    """

    first: float
    last: float
    days: float
    nights: int
    bounds: ReferenceBounds


class NoiseGrowth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Noise that has grown: one deviation of the nights before the last ones, and of the last
    ones, `nights` in number.
    """

    before: float
    now: float
    nights: int


class CounterReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A counter that only grows: where it stood `days` before tonight, and by how much it may have
    grown since.

    Beyond `most` it fails at once. `repeats` says that two nights running beyond `allowed` are a
    failure, and so are several of the last.
    """

    stood: float
    days: float
    allowed: float
    basis: str
    most: float | None = None
    repeats: bool = False


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that one measurement of one part is held against from before this run.

    `decides` says that it is known which side is the worse one: without it nothing fails. `before`:
    the night before was outside. `off` counts the nights before that were outside or unsteady, of
    the last `off_of` with tonight; with it `off_fails` of them fail. `rebased`: the machine was
    accepted under other circumstances, so that its value of then says nothing now.
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


def date(day: float) -> str:
    """The date of a day that is counted from 1970-01-01."""
    return datetime.date.fromordinal(_EPOCH + math.floor(day)).isoformat()


def basis(past: Reference, unit: str) -> str:
    """What the past consists of, in words."""
    if past.counter is not None:
        return past.counter.basis
    parts = []
    if past.level is not None:
        one = past.level
        text = (
            f", one deviation {quantity(one.deviation, unit)}, {one.factor:g} of it allowed"
            if one.deviation
            else ""
        )
        parts.append(f"median of {nights(one.nights)} {quantity(one.middle, unit)}{text}")
    if past.first is not None:
        parts.append(f"{describe_first_nights(past.first)} {quantity(past.first.middle, unit)}")
    if past.rebased:
        parts.append("re-based: the baseline was taken with another image, station or driver")
    return "; ".join(parts)


def describe_first_nights(first: FirstNights) -> str:
    """What the first nights were, in words."""
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
    """So many nights, in words."""
    return "1 night" if count == 1 else f"{count} nights"
