"""Rules for drift: how far a measurement may be from its own earlier nights, and how it is judged.

`fixtures/drift.toml`, read strictly, has the constants; each measurement's family has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.bounds import worse_side
from acceptance.core.limit import Limit, Worse
from acceptance.core.message import SetupError
from acceptance.core.strict import Strict, Text
from acceptance.expect.measurements import Rate
from acceptance.history.noise import NoiseBook, Spread

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


def read(path: Path, noise: NoiseBook) -> DriftBook:
    """The rules of a file, beside those of the families. Raises SetupError if any is wrong."""
    sheet = resources.read(path, Constants)
    if sheet.nights.known < max(
        sheet.slope.over, sheet.growth.recent + sheet.growth.before, sheet.off.of
    ):
        raise SetupError(
            f"{path.name}: nights.known is fewer nights than slope, growth or off look back"
        )
    return DriftBook(sheet, noise)
