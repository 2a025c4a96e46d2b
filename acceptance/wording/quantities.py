"""Values and bounds with their units, as people read them."""

from __future__ import annotations

from acceptance.core.limit import Limit, number


def quantity(value: float, unit: str, *, exact: bool = False) -> str:
    """A value with its unit; counts and ratios have none. `exact` is not rounded."""
    shown = repr(value) if exact else number(value)
    return shown if unit in ("count", "ratio") else f"{shown} {unit}"


def span(low: float | None, high: float | None, unit: str) -> str:
    """Bounds in words, at least one of which is given: `>= 5 W`."""
    if low is None or high is None:
        return f"<= {quantity(high or 0.0, unit)}" if low is None else f">= {quantity(low, unit)}"
    return f"= {quantity(low, unit)}" if low == high else f"{number(low)} .. {quantity(high, unit)}"


def limit_text(limit: Limit) -> str:
    """The bounds that decide."""
    return span(limit.low, limit.high, limit.unit)
