"""The reference of one measurement: what earlier nights say its value should be. Pure.

It is part of the plan. Values, levels, bounds and deviations are in the measurement's unit. Bounds
are allowed values. Only the bound on the worse side is set; both, if the worse side is unknown.
"""

from __future__ import annotations

import datetime
import math

import msgspec

from acceptance.core.language import ENGLISH
from acceptance.core.limit import number, quantity

_EPOCH = datetime.date(1970, 1, 1).toordinal()


class ReferenceBounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lowest and the highest allowed value; at least one of them is set."""

    low: float | None = None
    high: float | None = None

    def beyond(self, value: float) -> bool:
        """Whether a value is outside. NaN is, because no comparison with it is true."""
        return not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        )

    def words(self, unit: str) -> str:
        """The bounds in words: `>= 5 W`."""
        if self.low is not None and self.high is not None:
            return f"{number(self.low)} .. {quantity(self.high, unit)}"
        return (
            f">= {quantity(self.low, unit)}"
            if self.low is not None
            else f"<= {quantity(self.high or 0.0, unit)}"
        )


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """The level of the last nights.

    It is their median, their number, one deviation from night to night, and the number of
    deviations allowed.
    """

    middle: float
    nights: int
    deviation: float
    factor: float
    bounds: ReferenceBounds


class FirstNights(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first nights: their median, their number, and the `day` of the first.

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
    """A slow fall or rise over some nights.

    `first` and `last` are the levels of their first and last third, `days` the days between the
    two.
    """

    first: float
    last: float
    days: float
    nights: int
    bounds: ReferenceBounds


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


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reference of one measurement of one part, from before this run.

    `decides`: the worse side is known; without it nothing fails. `before`: the previous night was
    outside. `off` is how many of the last `off_of` nights, without tonight, were outside or
    unsteady; it fails when tonight makes it `off_fails`. `rebased`: the machine was accepted under
    other circumstances, so that the baseline's value is not used.
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
    """The date of a day counted from 1970-01-01."""
    return datetime.date.fromordinal(_EPOCH + math.floor(day)).isoformat()


def basis(past: Reference, unit: str) -> str:
    """The reference in words."""
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
