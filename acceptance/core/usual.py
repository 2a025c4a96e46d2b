"""The arithmetic of comparing values: the worse side, the usual value, the spread, too far. Pure.

Nights, comparisons of runs, siblings and baselines all use it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import msgspec

from acceptance.core.limit import Limit, Worse, number, quantity

# standard deviation of a normal distribution over its median absolute deviation
NORMAL = 1.4826
_HUGE = 1e300
_DIGITS = 6  # of a bound, rounded outward: a plan has two thousand bounds


class Bounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lowest and the highest allowed value; at least one of them is set."""

    low: float | None = None
    high: float | None = None

    def beyond(self, value: float) -> bool:
        """Whether a value is outside. NaN is, because no comparison with it is true."""
        return not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        )

    def words(self, unit: str) -> str:
        """The bounds in words: `>= 5 W`."""
        if self.low is not None and self.high is not None:
            return f"{number(self.low)} .. {quantity(self.high, unit)}"
        return (
            f">= {quantity(self.low, unit)}"
            if self.low is not None
            else f"<= {quantity(self.high or 0.0, unit)}"
        )


def worse_side(declared: Worse | None, limit: Limit | None, of_unit: Worse | None) -> Worse | None:
    """Which of two values is worse: as declared, else by a limit with one bound, else by the unit.

    None where nothing tells.
    """
    if declared is not None:
        return declared
    if limit is not None and (limit.low is None or limit.high is None):
        return "lower" if limit.low is not None else "higher"
    return of_unit


def median(values: Sequence[float]) -> float:
    """The usual value: the median. Raises IndexError for no values.

    `statistics.median` takes three times as long, and a board of eight GPUs has two thousand
    measurements.
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values: Sequence[float], middle: float) -> float:
    """The spread: the median absolute deviation from the middle, in the unit of the values."""
    return median([abs(value - middle) for value in values])


def deviation(values: Sequence[float], middle: float) -> float:
    """One standard deviation as the spread shows it, which a few odd values hardly move."""
    return NORMAL * spread(values, middle)


def bounds(low: float, high: float, worse: Worse | None) -> Bounds:
    """Bounds on the worse side, on both where it is unknown; rounded outward."""
    return Bounds(
        None if worse == "higher" else -_up(-low), None if worse == "lower" else _up(high)
    )


def _up(value: float) -> float:
    """A bound with few digits, rounded up, so that it allows a little more and never less.

    Near the largest float nothing is rounded, and the largest stands for what is beyond it.
    """
    if value == 0.0:
        return 0.0
    if not abs(value) < _HUGE:
        return max(-sys.float_info.max, min(value, sys.float_info.max))
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return rounded if rounded >= value else round(rounded + 10.0**-places, places)
