"""A series: values over time, and the functions that reduce it to one."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time: `points` are (seconds since boot, value) pairs in the series' unit, in the
    order they were taken.

    Reductions raise ValueError on an empty series, because nothing measured is not zero, and on a
    value that is no finite number.
    """

    name: str
    component: str
    unit: str
    points: tuple[tuple[float, float], ...]

    def _values(self) -> list[float]:
        if not self.points:
            raise ValueError(f"{self.name} on {self.component} has no samples")
        values = [value for _, value in self.points]
        if not all(map(math.isfinite, values)):
            raise ValueError(
                f"{self.name} on {self.component} has a sample that is no finite number"
            )
        return values

    def maximum(self) -> float:
        """The largest value."""
        return max(self._values())

    def minimum(self) -> float:
        """The smallest value."""
        return min(self._values())

    def median(self) -> float:
        """The middle value."""
        return statistics.median(self._values())

    def growth(self) -> float:
        """Last value less the first, for counters that only grow.

        Raises ValueError for one sample alone, and for a counter that fell.
        """
        values = self._values()
        if len(values) < 2:
            raise ValueError(f"{self.name} on {self.component} has one sample: growth needs two")
        if values != sorted(values):
            raise ValueError(
                f"{self.name} on {self.component} fell: the counter was reset, so its growth "
                "is not known"
            )
        return values[-1] - values[0]
