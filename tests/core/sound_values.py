"""What a sound machine gives of a due measurement."""

from __future__ import annotations

from acceptance.core.plan import Due


def good_value(one: Due) -> float:
    """A value that meets the limit, warn bounds included; without a limit one that is possible."""
    if one.limit is None:
        if one.ceiling is None:
            return 1.0
        if one.ceiling.high is not None:
            return min(1.0, 0.8 * one.ceiling.high)
        assert one.ceiling.low is not None
        return max(1.0, 2 * one.ceiling.low)
    bounds = (one.limit.warn_low, one.limit.warn_high, one.limit.low, one.limit.high)
    return next(bound for bound in bounds if bound is not None)
