"""How long a disk lasts at the pace of a machine's nights. Pure.

NVMe base specification, SMART / Health Information log: Percentage Used estimates the used share of
the life that the maker rated, in whole per cent; 100 % is the end of what is promised, not of the
disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.history.trend import TrendPoint, TrendRow

MEASUREMENT = "disk_wear"
STEP = 0.01  # what the disk counts in: a pace is known to one of them
# Fewer days tell nothing: a disk that lasts five years counts one per cent in 18.
LEAST_DAYS = 28.0
_YEAR_DAYS = 365.25


@dataclass(frozen=True, slots=True)
class Wear:
    """The pace of one disk: the used share of its rated life, and its growth over `days`.

    `years` are left at this pace, None where nothing grew; `least_years` if it grew by one more
    step, which the disk may not have counted yet.
    """

    used: float
    grown: float
    days: float
    years: float | None
    least_years: float

    @property
    def per_year(self) -> float:
        """The share of its life that it uses up in a year."""
        return self.grown / self.days * _YEAR_DAYS


def wear(points: Sequence[TrendPoint]) -> Wear | None:
    """The pace of a disk by its nights, oldest first; None where they span too few days.

    Where the count fell, the nights before do not count: the disk, or its firmware, began again.
    """
    since = 0
    for place in range(1, len(points)):
        if points[place].value < points[place - 1].value:
            since = place
    own = points[since:]
    if not own or (days := own[-1].day - own[0].day) < LEAST_DAYS:
        return None
    used = own[-1].value
    grown = round(used - own[0].value, 9)
    left_days = max(0.0, 1.0 - used) * days
    return Wear(
        used=used,
        grown=grown,
        days=days,
        years=left_days / grown / _YEAR_DAYS if grown else None,
        least_years=left_days / (grown + STEP) / _YEAR_DAYS,
    )


def paces(rows: Sequence[TrendRow]) -> tuple[tuple[TrendRow, Wear], ...]:
    """Every disk whose pace the nights tell, with the series that tells it."""
    found = (
        (row, wear(row.series.points)) for row in rows if row.series.measurement == MEASUREMENT
    )
    return tuple((row, pace) for row, pace in found if pace is not None)
