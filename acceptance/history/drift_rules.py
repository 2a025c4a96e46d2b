"""Rules for drift: `fixtures/drift.toml`, read strictly.

They say how far a measurement may be from its own earlier nights, and how it is judged.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from acceptance import resources
from acceptance.core.limit import Limit, Worse
from acceptance.core.strict import Strict, Text
from acceptance.core.usual import worse_side
from acceptance.history.noise import NoiseBook, Spread

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Nights = Annotated[int, msgspec.Meta(ge=3)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Factor = Annotated[float, msgspec.Meta(gt=0)]
_Rate = Annotated[float, msgspec.Meta(ge=0)]
_Names = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class DriftFileError(Exception):
    """rigproof's own file of drift rules is wrong; the message names file and entry."""


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


class _Named(Strict, frozen=True, kw_only=True):
    measurements: _Names
    basis: Text


_Row = TypeVar("_Row", bound=_Named)


class _Sense(_Named, frozen=True, kw_only=True):
    worse: Worse


class _Season(_Named, frozen=True, kw_only=True):
    change: _Factor


class Rate(_Named, frozen=True, kw_only=True):
    """The allowed growth of a counter.

    It may grow by `per_day`, and by one `step` in all. Above `most_per_day` it fails at once.
    Growth is measured over `over_days`.

    `repeats`: two consecutive nights above it fail, and so do as many of the last nights as fail
    for any other measurement.
    """

    per_day: _Rate
    most_per_day: _Rate | None = None
    over_days: _Rate = 0.0
    step: _Rate = 0.0
    repeats: bool = False


class Constants(Strict, frozen=True):
    """The rules for all measurements."""

    nights: NightCounts
    deviation: Deviation
    step: Step
    first: Start
    slope: SlopeRule
    growth: Growth
    off: OutsideNights


class _Sheet(Constants, frozen=True):
    sense: tuple[_Sense, ...] = ()
    season: tuple[_Season, ...] = ()
    counter: tuple[Rate, ...] = ()
    exempt: tuple[_Named, ...] = ()


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

    sheet: _Sheet
    noise: NoiseBook

    def exempt(self, measurement: str) -> str | None:
        """Why nights of this measurement cannot be compared; None if they can."""
        row = _row(self.sheet.exempt, measurement)
        if row is not None:
            return row.basis
        # Two runs of a counter cannot be compared, its nights can.
        return None if self.counts(measurement) else self.noise.incomparable(measurement)

    def counts(self, measurement: str) -> bool:
        """Whether this is a counter of the hardware, which counts whatever the test does."""
        return _row(self.sheet.counter, measurement) is not None

    def rule(
        self, measurement: str, unit: str, limit: Limit | None, *, virtual: bool
    ) -> DriftRule | None:
        """How a measurement is judged by its nights; None if it is exempt.

        `virtual`: the machine is a VM.
        """
        if self.exempt(measurement) is not None:
            return None
        season = _row(self.sheet.season, measurement)
        return DriftRule(
            self.sheet,
            self.worse(measurement, unit, limit),
            self.noise.spread(measurement, unit, same_part=True, virtual=virtual),
            _row(self.sheet.counter, measurement),
            season.change if season is not None else None,
            limit,
        )

    def worse(self, measurement: str, unit: str, limit: Limit | None) -> Worse | None:
        """The worse side: from the rules, else from a limit with one bound, else from the unit."""
        row = _row(self.sheet.sense, measurement)
        return worse_side(row.worse if row is not None else None, limit, self.noise.worse(unit))

    def incomparable(self, measurement: str) -> str | None:
        """Why two runs' values cannot be compared; None if they can.

        A counter of a part's whole life is no value of one run: its nights are judged by its rate.
        """
        return self.exempt(measurement) or self.noise.incomparable(measurement)


def _row(rows: Sequence[_Row], measurement: str) -> _Row | None:
    return next(
        (
            row
            for row in rows
            if any(fnmatch.fnmatchcase(measurement, name) for name in row.measurements)
        ),
        None,
    )


def read(path: Path, noise: NoiseBook) -> DriftBook:
    """The rules of a file.

    Raises DriftFileError if anything is wrong, and for a measurement that is in two tables of one
    kind.
    """
    sheet = resources.read(path, _Sheet, DriftFileError)
    for rows in (sheet.sense, sheet.season, (*sheet.counter, *sheet.exempt)):
        names = [name for row in rows for name in row.measurements]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DriftFileError(f"{path.name}: {twice[0]} stands twice")
    if sheet.nights.known < max(
        sheet.slope.over, sheet.growth.recent + sheet.growth.before, sheet.off.of
    ):
        raise DriftFileError(
            f"{path.name}: nights.known is fewer nights than slope, growth or off look back"
        )
    for rate in sheet.counter:
        if rate.most_per_day is not None and rate.most_per_day < rate.per_day:
            raise DriftFileError(
                f"{path.name}: most_per_day of {rate.measurements[0]} is less than its per_day"
            )
    return DriftBook(sheet, noise)
