"""The loosest limits and waivers of a machine file: what can no longer fail is refused. Pure.

The numbers are data: by unit in `fixtures/loosest.toml`, and in the family of a measurement what is
special of it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from acceptance import resources
from acceptance.core.limit import UNITS, Limit, number
from acceptance.core.strict import Strict, Text

FILE = "loosest.toml"
Possible = tuple[float, float]
Problem = tuple[str, str]  # the key at fault ("low"), and what is wrong with it
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_TIGHTEN = "it counts faults, so a limit of the machine's own may only be tighter: remove it"
_WAIVE = "waive a known old fault with its worst value"
_MEND = "correct the machine"
_CORRECT = "correct the machine, or the limit"


class Loosest(Strict, frozen=True, kw_only=True):
    """`[measurement.loosest]`: the bounds of a `[[limit]]`, and the worst values of a waiver.

    They stand in place of the shares of the limit that the machine file replaces.
    """

    basis: Text
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("needs low, high, or both")


def _as_shown(bound: float) -> float:
    """A bound as it is shown, so that whoever types it is right."""
    return float(number(bound))


class Bounds(Strict, frozen=True, kw_only=True):
    """How far the machine file may go with one measurement.

    `possible` are the values that can occur. `faults` is the most faults that a waiver accepts,
    where it counts faults; None where it counts none.
    """

    possible: Possible
    faults: float | None = None
    loosest: Loosest | None = None

    def loosest_low(self, low: float, share: float) -> float:
        """The least floor in place of `low`."""
        if self.loosest is not None and self.loosest.low is not None:
            return min(low, self.loosest.low)
        return _as_shown(share * low) if low > 0 else low

    def loosest_high(self, high: float, share: float) -> float:
        """The highest ceiling in place of `high`."""
        if self.loosest is not None and self.loosest.high is not None:
            return max(high, self.loosest.high)
        return _as_shown(high / share) if high > 0 else high


class _Part(Strict, frozen=True):
    share: _Share
    basis: Text


class _Unit(Strict, frozen=True):
    unit: Text
    possible: Possible
    basis: Text
    impossible: Literal["above", "below"] | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS or not self.possible[0] < self.possible[1]:
            raise ValueError("needs a unit of ours, and the least before the most")


class Book(Strict, frozen=True):
    """`loosest.toml`."""

    limit: _Part
    waiver: _Part
    unit: tuple[_Unit, ...]

    def __post_init__(self) -> None:
        if sorted(one.unit for one in self.unit) != sorted(UNITS):
            raise ValueError("needs each unit once")


@functools.cache
def book() -> Book:
    """The shipped file. Raises SetupError."""
    return resources.read(resources.locate(FILE), Book)


@functools.cache
def possible() -> Mapping[str, Possible]:
    """The values that can occur, by unit. Raises SetupError."""
    return {one.unit: one.possible for one in book().unit}


def plausible(unit: str, range_: Possible | None = None, basis: str | None = None) -> Limit | None:
    """What a value of this unit can be at best; None of a unit that has no better side.

    `range_` and `basis` are the measurement's own. Without them the unit's apply, but of a time
    nothing is known: it may say how far a clock is off.
    """
    row = next(one for one in book().unit if one.unit == unit)
    basis = basis or row.basis
    if row.impossible == "above":
        return Limit(unit, basis, high=(range_ or row.possible)[1])
    return (
        Limit(unit, basis, low=range_[0])
        if row.impossible == "below" and range_ is not None
        else None
    )


def _amount(value: float, limit: Limit) -> str:
    return number(value) if limit.unit == "count" else f"{number(value)} {limit.unit}"


def idle_bound(name: str, limit: Limit, range_: Possible, cure: str = _CORRECT) -> Problem | None:
    """A bound that no value can be past, and the cure; None where each can fail.

    Of a limit that one value alone meets it is enough that another value can occur.
    """
    if limit.low is not None and limit.low == limit.high:
        return None
    of_unit = range_ == possible()[limit.unit]
    what = f"nothing measured in {limit.unit}" if of_unit else f"no {name}"
    for key, word, edge in (
        ("low", "below", range_[0]),
        ("warn_low", "below", range_[0]),
        ("high", "above", range_[1]),
        ("warn_high", "above", range_[1]),
    ):
        bound = getattr(limit, key)
        if bound is None or (bound > edge if word == "below" else bound < edge):
            continue
        told = f"{key} is {number(bound)}, and {what} is ever {word} {number(edge)}"
        return key, f"{told}, so it could never fail: {cure}"
    return None


def looser(name: str, own: Limit, before: Limit, bounds: Bounds) -> Problem | None:
    """What makes a limit of the machine's own too loose in place of the one `before`, or None."""
    if bounds.faults is not None:
        return _not_tighter(name, own, before, _WAIVE if bounds.faults else _MEND)
    share = book().limit.share
    if own.low is not None and before.low is not None:
        least = bounds.loosest_low(before.low, share)
        if own.low < least:
            told = f"low is {number(own.low)}, and the least in place of {number(before.low)}"
            cure = f"is {_amount(least, own)}: correct the machine, or waive a known shortfall"
            return "low", f"{told} {cure}"
    if own.high is not None and before.high is not None:
        most = bounds.loosest_high(before.high, share)
        if own.high > most:
            told = f"high is {number(own.high)}, and the most in place of {number(before.high)}"
            cure = f"is {_amount(most, own)}: correct the machine, or waive a known shortfall"
            return "high", f"{told} {cure}"
    return None


def _not_tighter(name: str, own: Limit, before: Limit, cure: str) -> Problem | None:
    """Where a limit lets by what the one before fails or warns of."""
    for key, warn in (("low", "warn_low"), ("high", "warn_high")):
        for bound in (key, warn):
            was = _edge(before, key, bound)
            now = _edge(own, key, bound)
            if was is None or (now is not None and (now >= was if key == "low" else now <= was)):
                continue
            given = getattr(own, bound)
            told = f"{bound} is missing" if given is None else f"{bound} is {number(given)}"
            told = f"{told}, and {name} has {bound} = {number(was)} without the machine file"
            if given is None:
                return bound, f"{told}: give {bound} too, or remove the limit"
            return bound, f"{told}; {_TIGHTEN}, or {cure}"
    return None


def _edge(limit: Limit, key: str, bound: str) -> float | None:
    """From where on a value is found; where nothing warns, that is where it fails."""
    found: float | None = getattr(limit, bound)
    return found if found is not None or bound == key else getattr(limit, key)


def beyond(limit: Limit, bounds: Bounds) -> Problem | None:
    """Of a limit that replaces none: a bound past the loosest that the family allows, or None."""
    loosest = bounds.loosest
    if loosest is None:
        return None
    for key, given, allowed in (
        ("low", limit.low, loosest.low),
        ("high", limit.high, loosest.high),
    ):
        if given is None or allowed is None:
            continue
        if given < allowed if key == "low" else given > allowed:
            told = f"{key} is {number(given)}, and the loosest that can fail is"
            return key, f"{told} {_amount(allowed, limit)} ({loosest.basis}): {_CORRECT}"
    return None


def excuses_anything(name: str, worst: float, limit: Limit, bounds: Bounds) -> str | None:
    """Why a waiver with this worst value, of a measurement with this limit, could not fail."""
    share = book().waiver.share
    if limit.low is not None and worst < limit.low:
        if worst <= bounds.possible[0]:
            return (
                f"worst is {number(worst)}, and no {name} is ever below "
                f"{number(bounds.possible[0])}, so the waiver would excuse anything: give the "
                "least value that is accepted"
            )
        least = bounds.loosest_low(limit.low, share)
        if worst < least:
            told = f"worst is {number(worst)}, and the least that a waiver of {name} accepts"
            cure = "correct the machine, or give the least value that it has reached"
            return f"{told} in place of {number(limit.low)} is {_amount(least, limit)}: {cure}"
    if limit.high is not None and worst > limit.high:
        if bounds.faults is not None:
            most = max(bounds.faults, limit.high)
        elif limit.high > 0 or (bounds.loosest is not None and bounds.loosest.high is not None):
            most = bounds.loosest_high(limit.high, share)
        else:
            most = bounds.possible[1]
        if worst > most or worst >= bounds.possible[1]:
            if bounds.faults == 0:
                return (
                    f"worst is {number(worst)}, and a waiver of {name} would excuse anything: "
                    "correct the machine, or what the machine file declares"
                )
            told = f"worst is {number(worst)}, and the most that a waiver of {name} accepts is"
            cure = "correct the machine, or give the worst value that it has shown"
            return f"{told} {_amount(most, limit)}, so it would excuse anything: {cure}"
    return None
