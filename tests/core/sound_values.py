"""What a sound machine gives of a due measurement."""

from __future__ import annotations

from acceptance.core.plan import Due


def good_value(one: Due) -> float:
    """A value that meets the limit, warn bounds included; without a limit one that is possible."""
    if one.limit is None:
        highest = one.ceiling.high if one.ceiling is not None else None
        return 1.0 if highest is None else min(1.0, 0.8 * highest)
    bounds = (one.limit.warn_low, one.limit.warn_high, one.limit.low, one.limit.high)
    return next(bound for bound in bounds if bound is not None)
