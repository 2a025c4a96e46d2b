"""A series: values over time, and its reductions to one value."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from acceptance.core.message import english
from acceptance.core.parts import Component
from acceptance.wording.errors import WordedError


@dataclass(frozen=True, slots=True)
class Series:
    """Values over time: (seconds since boot, value in `unit`) pairs, in the order of measurement.

    Reductions raise WordedError on an empty series, because a missing measurement is not zero, and
    on a value that is not a finite number.
    """

    name: str
    component: Component
    unit: str
    points: tuple[tuple[float, float], ...]

    def _values(self) -> list[float]:
        if not self.points:
            raise WordedError(
                english("no_samples", "{reading} on {component} has no samples"),
                reading=self.name,
                component=str(self.component),
            )
        values = [value for _, value in self.points]
        if not all(map(math.isfinite, values)):
            raise WordedError(
                english(
                    "series_not_finite",
                    "{reading} on {component} has a sample that is no finite number",
                ),
                reading=self.name,
                component=str(self.component),
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

        Raises WordedError for a single sample, and for a counter that fell.
        """
        values = self._values()
        if len(values) < 2:
            raise WordedError(
                english(
                    "series_of_one", "{reading} on {component} has one sample: growth needs two"
                ),
                reading=self.name,
                component=str(self.component),
            )
        if values != sorted(values):
            raise WordedError(
                english(
                    "series_fell",
                    "{reading} on {component} fell: the counter was reset, so its growth is not "
                    "known",
                ),
                reading=self.name,
                component=str(self.component),
            )
        return values[-1] - values[0]
