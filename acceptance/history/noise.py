"""Noise: `fixtures/noise.toml`, read strictly.

It says how far two values of sound hardware may lie apart before the difference means something.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core import usual
from acceptance.core.limit import UNITS, Worse
from acceptance.core.strict import Strict, Text
from acceptance.core.usual import Bounds

_Spread = Annotated[float, msgspec.Meta(ge=0)]
_Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
_Names = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class NoiseFileError(Exception):
    """rigproof's own file of spreads is wrong; the message names file and entry."""


class _Spreads(Strict, frozen=True, kw_only=True):
    basis: Text
    other: _Spread
    share: _Share | None = None
    absolute: _Spread | None = None


class _Noise(_Spreads, frozen=True, kw_only=True):
    measurements: _Names
    virtual: bool = False


class _Unit(_Spreads, frozen=True, kw_only=True):
    unit: Text
    worse: Worse | None = None


class _Incomparable(Strict, frozen=True):
    measurements: _Names
    basis: Text


class _Repeated(Strict, frozen=True):
    runs: Annotated[int, msgspec.Meta(ge=3)]
    deviations: _Spread
    at_least: Annotated[float, msgspec.Meta(ge=0, le=1)]
    basis: Text


class _Sheet(Strict, frozen=True):
    repeated: _Repeated
    noise: tuple[_Noise, ...]
    unit: tuple[_Unit, ...]
    incomparable: tuple[_Incomparable, ...] = ()


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
            return usual.bounds(value - self.size, value + self.size, worse)
        # A share is of the larger one, which is the other one beyond the value, and else the value.
        nearer, further = value * (1 - self.size), value / (1 - self.size)
        return usual.bounds(
            nearer if value >= 0 else further, further if value >= 0 else nearer, worse
        )


@functools.cache
def _matches(measurement: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(measurement, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class NoiseBook:
    """The spreads of every measurement."""

    sheet: _Sheet

    def incomparable(self, measurement: str) -> str | None:
        """Why two runs' values of this measurement cannot be compared; None if they can."""
        found = (
            row.basis for row in self.sheet.incomparable if _matches(measurement, row.measurements)
        )
        return next(found, None)

    def spread(self, measurement: str, unit: str, *, same_part: bool, virtual: bool) -> Spread:
        """The allowed spread of a measurement.

        `same_part`: both values are of one component. `virtual`: one was measured in a VM.
        """
        row = self._row(measurement, unit, virtual)
        own = row.absolute if row.absolute is not None else row.share
        assert own is not None
        return Spread(own if same_part else row.other, row.absolute is not None, row.basis)

    def _row(self, measurement: str, unit: str, virtual: bool) -> _Spreads:
        for row in self.sheet.noise:
            if _matches(measurement, row.measurements) and (virtual or not row.virtual):
                return row
        return next(row for row in self.sheet.unit if row.unit == unit)

    def worse(self, unit: str) -> Worse | None:
        """Which values of a unit are worse if no limit says so; None if that is unknown."""
        return next(row.worse for row in self.sheet.unit if row.unit == unit)

    def repeated(self, general: Spread, values: Sequence[float]) -> Spread:
        """The spread of repeated values of one part; the general one if there are too few."""
        rule = self.sheet.repeated
        if len(values) < rule.runs:
            return general
        middle = usual.median(values)
        shown = rule.deviations * usual.spread(values, middle)
        least = rule.at_least * general.between(max(values, key=abs), 0.0)
        return Spread(max(shown, least), True, rule.basis)


def read(path: Path) -> NoiseBook:
    """The spreads of a file.

    Raises NoiseFileError if anything is wrong, and for a unit that is not listed exactly once.
    """
    sheet = resources.read(path, _Sheet, NoiseFileError)
    for row in (*sheet.noise, *sheet.unit):
        if (row.share is None) == (row.absolute is None):
            raise NoiseFileError(
                f"{path.name}: an entry needs either share or absolute ({row.basis})"
            )
        own = row.share if row.share is not None else row.absolute
        assert own is not None
        if row.share is not None and row.other >= 1:
            raise NoiseFileError(f"{path.name}: a share of 1 allows every value ({row.basis})")
        if row.other < own:
            raise NoiseFileError(
                f"{path.name}: two parts cannot be nearer to each other than one to itself "
                f"({row.basis})"
            )
    units = sorted(row.unit for row in sheet.unit)
    if units != sorted(UNITS):
        raise NoiseFileError(
            f"{path.name}: every unit must stand there once: {', '.join(sorted(UNITS))}"
        )
    return NoiseBook(sheet)
