"""A series: values over time, and its reductions to one value."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time: (seconds since boot, value in `unit`) pairs, in the order of measurement.

    Reductions raise ValueError on an empty series, because a missing measurement is not zero, and
    on a value that is not a finite number.
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
        """The median."""
        return statistics.median(self._values())

    def growth(self) -> float:
        """The last value minus the first, for counters that only grow.

        Raises ValueError for a single sample, and for a counter that fell.
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
