"""Which of two values is worse, by their limits, or by the unit where there is no limit."""

from __future__ import annotations

from acceptance.core.limit import Limit, Worse

LimitedValue = tuple[Limit | None, float]  # a value and the limit it was compared with


def _sense(limit: Limit) -> str:
    if limit.low is not None and limit.high is not None:
        return "outside"
    return "lower" if limit.low is not None else "higher"


def _outside(limit: Limit, value: float) -> float:
    """How far a value is outside a limit with two bounds."""
    assert limit.low is not None
    assert limit.high is not None
    return max(limit.low - value, value - limit.high, 0.0)


def is_worse(before: LimitedValue, after: LimitedValue, unit: Worse | None) -> bool | None:
    """Whether the second value is worse than the first; None where that is undecided.

    With a lower bound the lower value is worse, with an upper bound the higher, with both the one
    further outside. `unit` is the worse direction of the unit, used where neither value has a
    limit. Limits of different directions decide nothing.
    """
    limits = [limit for limit, _ in (before, after) if limit is not None]
    senses: set[str | None] = {_sense(limit) for limit in limits} or {unit}
    if len(senses) > 1 or None in senses:
        return None
    (first, a), (second, b) = before, after
    if senses == {"outside"}:
        was, now = _outside(first or limits[0], a), _outside(second or limits[0], b)
        return None if was == now else now > was
    return b < a if senses == {"lower"} else b > a
