"""The arithmetic of comparing values: spread, worse side, and the bounds made on it. Pure."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from statistics import median

from acceptance.core.limit import Limit, Worse
from acceptance.core.past import Bounds

_HUGE = 1e300
_DIGITS = 6  # of a bound, rounded outward: a plan has two thousand bounds
# standard deviation of a normal distribution over its median absolute deviation
NORMAL = 1.4826


def spread_of(values: Sequence[float], middle: float) -> float:
    """The spread: the median absolute deviation from the middle, in the unit of the values."""
    return median([abs(value - middle) for value in values])


def deviation_of(values: Sequence[float], middle: float) -> float:
    """One standard deviation as the spread shows it, which a few odd values hardly move."""
    return NORMAL * spread_of(values, middle)


def worse_side(declared: Worse | None, limit: Limit | None, of_unit: Worse | None) -> Worse | None:
    """Which of two values is worse: as declared, else by a limit with one bound, else by the unit.

    None where nothing tells.
    """
    if declared is not None:
        return declared
    if limit is not None and (limit.low is None or limit.high is None):
        return "lower" if limit.low is not None else "higher"
    return of_unit


def on_worse_side(low: float, high: float, worse: Worse | None) -> Bounds:
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
