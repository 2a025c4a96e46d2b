"""How far a measurement may be from its own nights before, and how it is to be judged:
`fixtures/drift.toml`, read strictly.
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
from acceptance.history.noise import NoiseBook, Spread

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Nights = Annotated[int, msgspec.Meta(ge=3)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Factor = Annotated[float, msgspec.Meta(gt=0)]
_Rate = Annotated[float, msgspec.Meta(ge=0)]
_Names = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class DriftFileError(Exception):
    """The file of rules about drift of rigproof's own is wrong; the message is one sentence that
    names file and entry.
    """


class NightCounts(Strict, frozen=True):
    """The median is of so many `recent` nights, and of `least` at the fewest.

    Of more than are needed the first `recent` and the last `known` are read.
    """

    recent: _Nights
    least: _Nights
    known: _Nights
    basis: Text


class Deviation(Strict, frozen=True):
    """One deviation is `of_noise` of the general spread; that counts as `prior` nights, and the
    own one is at least `floor` of it.
    """

    of_noise: _Share
    prior: _Count
    floor: _Share
    basis: Text


class Step(Strict, frozen=True):
    """How many deviations from the median of the nights are allowed."""

    factor: _Factor
    basis: Text


class Start(Strict, frozen=True):
    """How many deviations from the median of the first nights are allowed, the
    baseline among them.
    """

    factor: _Factor
    basis: Text


class SlopeRule(Strict, frozen=True):
    """A slope is looked for in the last `over` nights, in `least` at the fewest that lie `days`
    apart.

    Its ends differ by `factor` standard errors and by `change` general deviations.
    """

    over: _Nights
    least: _Nights
    days: _Factor
    factor: _Factor
    change: _Factor
    basis: Text


class Growth(Strict, frozen=True):
    """Noise has grown when that of the `recent` nights is more than `ratio` times that of
    `before` nights or more.
    """

    recent: _Nights
    before: _Nights
    ratio: Annotated[float, msgspec.Meta(gt=1)]
    basis: Text


class OutsideNights(Strict, frozen=True):
    """So many nights that were outside or unsteady among the last ones fail, tonight included."""

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
    """A counter may grow by `per_day` and by one `step` of its own; by `most_per_day` it fails at
    once.

    Growth is taken over `over_days`.

    `repeats`: two nights running beyond it are a failure, and so are as many of the last ones as
    fail of any measurement.
    """

    per_day: _Rate
    most_per_day: _Rate | None = None
    over_days: _Rate = 0.0
    step: _Rate = 0.0
    repeats: bool = False


class Constants(Strict, frozen=True):
    """The rules that hold for every measurement."""

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
    """How one measurement is judged: `worse` is which side decides (None: neither), `general` its
    spread before nights tell.

    `rate` is there for a counter. `slow` is by how much a level may move slowly, in the unit, where
    seasons move it. `limit` is what the value is held against anyway.
    """

    constants: Constants
    worse: Worse | None
    general: Spread
    rate: Rate | None = None
    slow: float | None = None
    limit: Limit | None = None

    def deviation(self, value: float) -> float:
        """One deviation at this value before nights tell, in the measurement's unit."""
        return self.constants.deviation.of_noise * self.general.between(value, 0.0)


@dataclass(frozen=True, slots=True)
class DriftBook:
    """The rules of every measurement."""

    sheet: _Sheet
    noise: NoiseBook

    def exempt(self, measurement: str) -> str | None:
        """Why nights of this measurement say nothing of each other; None where they do."""
        row = _row(self.sheet.exempt, measurement)
        if row is not None:
            return row.basis
        # Two runs side by side say nothing of a counter, nights do.
        return None if self.counts(measurement) else self.noise.incomparable(measurement)

    def counts(self, measurement: str) -> bool:
        """Whether this is a counter that the hardware keeps, and that goes on counting whatever
        it is tested with.
        """
        return _row(self.sheet.counter, measurement) is not None

    def rule(
        self, measurement: str, unit: str, limit: Limit | None, *, virtual: bool
    ) -> DriftRule | None:
        """How a measurement is judged by its nights; None for one that is exempt.

        `virtual`: the machine is a VM.
        """
        if self.exempt(measurement) is not None:
            return None
        season = _row(self.sheet.season, measurement)
        return DriftRule(
            self.sheet,
            self._worse(measurement, unit, limit),
            self.noise.spread(measurement, unit, same_part=True, virtual=virtual),
            _row(self.sheet.counter, measurement),
            season.change if season is not None else None,
            limit,
        )

    def _worse(self, measurement: str, unit: str, limit: Limit | None) -> Worse | None:
        """By the rules, else by the limit where it has one bound, else by the unit."""
        row = _row(self.sheet.sense, measurement)
        if row is not None:
            return row.worse
        if limit is not None and (limit.low is None or limit.high is None):
            return "lower" if limit.low is not None else "higher"
        return self.noise.worse(unit)


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

    Raises DriftFileError for anything that is not exactly right, and for a measurement that stands
    in two tables of one kind.
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
