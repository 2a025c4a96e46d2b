"""Noise: how far two values of sound hardware may lie apart before the difference means something.

Each measurement's family says it; `fixtures/noise.toml`, read strictly, has what is general: the
spread of each unit, and when repeated values tell their own.

Rules for drift: how far a measurement may be from its own earlier nights, and how it is judged.

`fixtures/drift.toml`, read strictly, has the constants; each measurement's family has the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.bounds import on_worse_side, spread_of, worse_side
from acceptance.core.limit import UNITS, Limit, Worse
from acceptance.core.message import SetupError, UserError
from acceptance.core.past import Bounds
from acceptance.core.plan import SiteChecks
from acceptance.core.strict import Strict, Text
from acceptance.expect import measurements, site_families
from acceptance.expect.measurements import Measurements, Noise, Rate

_Spread = Annotated[float, msgspec.Meta(ge=0)]


class _Unit(Noise, frozen=True, kw_only=True):
    unit: Text
    worse: Worse | None = None


class _Repeated(Strict, frozen=True):
    runs: Annotated[int, msgspec.Meta(ge=3)]
    deviations: _Spread
    at_least: Annotated[float, msgspec.Meta(ge=0, le=1)]
    basis: Text


class _Sheet(Strict, frozen=True):
    repeated: _Repeated
    unit: tuple[_Unit, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """The allowed difference between two values, and its basis.

    `size` is a share of the larger value or, if `absolute`, in the unit of the values.
    """

    size: float
    absolute: bool
    basis: str

    def between(self, first: float, second: float) -> float:
        """The largest difference of these two that means nothing, in their unit."""
        return self.size if self.absolute else self.size * max(abs(first), abs(second))

    def bounds(self, value: float, worse: Worse | None) -> Bounds:
        """What another value may be without meaning anything; only the bound on the worse side."""
        if self.absolute:
            return on_worse_side(value - self.size, value + self.size, worse)
        # A share is of the larger one, which is the other one beyond the value, and else the value.
        nearer, further = value * (1 - self.size), value / (1 - self.size)
        return on_worse_side(
            nearer if value >= 0 else further, further if value >= 0 else nearer, worse
        )


@dataclass(frozen=True, slots=True)
class NoiseBook:
    """The spreads of every measurement: its own, or else those of its unit."""

    sheet: _Sheet
    families: Measurements

    def with_site(self, *checks: SiteChecks | None) -> NoiseBook:
        """This book with the spreads of the sites' own measurements in these plans.

        Of a measurement that stands in several, the first counts. One that this version cannot
        read has the spread of its unit.
        """
        known = dict(self.families.by_name)
        for one in filter(None, checks):
            with contextlib.suppress(UserError):
                known = {**site_families.parse(one.families).measurements.by_name, **known}
        return replace(self, families=Measurements(known, self.families.families))

    def incomparable(self, measurement: str) -> str | None:
        """Why two runs' values of this measurement cannot be compared; None if they can.

        A counter of a part's whole life is no value of one run: its nights are judged by its rate.
        """
        known = self.families.get(measurement)
        return (known.exempt or known.incomparable) if known is not None else None

    def spread(self, measurement: str, unit: str, *, same_part: bool, virtual: bool) -> Spread:
        """The allowed spread of a measurement.

        `same_part`: both values are of one component. `virtual`: one was measured in a VM.
        """
        row = self._noise(measurement, unit, virtual)
        return Spread(row.own if same_part else row.other, row.absolute is not None, row.basis)

    def _noise(self, measurement: str, unit: str, virtual: bool) -> Noise:
        known = self.families.get(measurement)
        own = known and ((known.noise_in_vm if virtual else None) or known.noise)
        return own or next(row for row in self.sheet.unit if row.unit == unit)

    def worse(self, unit: str) -> Worse | None:
        """Which values of a unit are worse if no limit says so; None if that is unknown."""
        return next(row.worse for row in self.sheet.unit if row.unit == unit)

    def repeated(self, general: Spread, values: Sequence[float]) -> Spread:
        """The spread of repeated values of one part; the general one if there are too few."""
        rule = self.sheet.repeated
        if len(values) < rule.runs:
            return general
        middle = median(values)
        shown = rule.deviations * spread_of(values, middle)
        least = rule.at_least * general.between(max(values, key=abs), 0.0)
        return Spread(max(shown, least), True, rule.basis)


def read(path: Path) -> NoiseBook:
    """The general spreads of a file, beside those of the shipped families.

    Raises SetupError if anything is wrong, and for a unit that is not listed exactly once.
    """
    sheet = resources.read(path, _Sheet)
    units = sorted(row.unit for row in sheet.unit)
    if units != sorted(UNITS):
        raise SetupError(
            f"{path.name}: every unit must stand there once: {', '.join(sorted(UNITS))}"
        )
    return NoiseBook(sheet, measurements.shipped())


_Count = Annotated[int, msgspec.Meta(ge=1)]
_Nights = Annotated[int, msgspec.Meta(ge=3)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Factor = Annotated[float, msgspec.Meta(gt=0)]


class NightCounts(Strict, frozen=True):
    """How many nights are used.

    The median is of the `recent` nights, and needs `least`. Only the first `recent` and the last
    `known` nights are read.
    """

    recent: _Nights
    least: _Nights
    known: _Nights
    basis: Text


class Deviation(Strict, frozen=True):
    """One deviation from night to night.

    Before any night it is `of_noise` of the general spread, which weighs as much as `prior` nights.
    It is never below `floor` of that.
    """

    of_noise: _Share
    prior: _Count
    floor: _Share
    basis: Text


class Step(Strict, frozen=True):
    """How many deviations from the median of the last nights are allowed."""

    factor: _Factor
    basis: Text


class Start(Strict, frozen=True):
    """How many deviations from the median of the first nights are allowed.

    The baseline is one of these nights.
    """

    factor: _Factor
    basis: Text


class SlopeRule(Strict, frozen=True):
    """When a slow change counts as a slope.

    It is searched in the last `over` nights, and needs `least` nights and `days` days between their
    first and last third. The two thirds must differ by `factor` standard errors and by `change`
    general deviations.
    """

    over: _Nights
    least: _Nights
    days: _Factor
    factor: _Factor
    change: _Factor
    basis: Text


class Growth(Strict, frozen=True):
    """When noise has grown.

    The deviation of the `recent` nights is more than `ratio` times that of the nights before.
    `before` is the least number of nights before them.
    """

    recent: _Nights
    before: _Nights
    ratio: Annotated[float, msgspec.Meta(gt=1)]
    basis: Text


class OutsideNights(Strict, frozen=True):
    """Among the last `of` nights, tonight included, `fails` that were outside or unsteady fail."""

    of: Annotated[int, msgspec.Meta(ge=2)]
    fails: Annotated[int, msgspec.Meta(ge=2)]
    basis: Text


class Constants(Strict, frozen=True):
    """The rules for all measurements."""

    nights: NightCounts
    deviation: Deviation
    step: Step
    first: Start
    slope: SlopeRule
    growth: Growth
    off: OutsideNights


@dataclass(frozen=True, slots=True)
class DriftRule:
    """How one measurement is judged.

    `worse` is the side that decides (None: neither), `general` its spread without any nights.
    `rate` is set for a counter. `slow` is how far the level may move with the seasons, in the
    measurement's unit. `limit` is its absolute limit.
    """

    constants: Constants
    worse: Worse | None
    general: Spread
    rate: Rate | None = None
    slow: float | None = None
    limit: Limit | None = None

    def deviation(self, value: float) -> float:
        """One deviation at this value without any nights, in the measurement's unit."""
        return self.constants.deviation.of_noise * self.general.between(value, 0.0)


@dataclass(frozen=True, slots=True)
class DriftBook:
    """The rules of every measurement."""

    sheet: Constants
    noise: NoiseBook

    def exempt(self, measurement: str) -> str | None:
        """Why nights of this measurement cannot be compared; None if they can."""
        # Two runs of a counter cannot be compared, its nights can.
        return None if self.counts(measurement) else self.noise.incomparable(measurement)

    def counts(self, measurement: str) -> bool:
        """Whether this is a counter of the hardware, which counts whatever the test does."""
        known = self.noise.families.get(measurement)
        return known is not None and known.counter is not None

    def rule(
        self, measurement: str, unit: str, limit: Limit | None, *, virtual: bool
    ) -> DriftRule | None:
        """How a measurement is judged by its nights; None if it is exempt.

        `virtual`: the machine is a VM.
        """
        if self.exempt(measurement) is not None:
            return None
        known = self.noise.families.get(measurement)
        return DriftRule(
            self.sheet,
            self.worse(measurement, unit, limit),
            self.noise.spread(measurement, unit, same_part=True, virtual=virtual),
            known.counter if known is not None else None,
            known.season.change if known is not None and known.season is not None else None,
            limit,
        )

    def worse(self, measurement: str, unit: str, limit: Limit | None) -> Worse | None:
        """The worse side: from its family, else from a limit with one bound, else from the unit."""
        known = self.noise.families.get(measurement)
        declared = known.sense.worse if known is not None and known.sense is not None else None
        return worse_side(declared, limit, self.noise.worse(unit))


def read_rules(path: Path, noise: NoiseBook) -> DriftBook:
    """The rules of a file, beside those of the families. Raises SetupError if any is wrong."""
    sheet = resources.read(path, Constants)
    if sheet.nights.known < max(
        sheet.slope.over, sheet.growth.recent + sheet.growth.before, sheet.off.of
    ):
        raise SetupError(
            f"{path.name}: nights.known is fewer nights than slope, growth or off look back"
        )
    return DriftBook(sheet, noise)
