"""Units and limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from acceptance.core.message import Text

Worse = Literal["lower", "higher"]

# A closed set: a unit that is not here is a typing error, not a new unit.
UNITS = frozenset({
    "GB/s", "GFLOP/s", "TFLOP/s", "IOPS", "Mtokens/s", "Mbit/s", "MT/s", "GT/s",
    "degC", "W", "MHz", "us", "ns", "s", "count", "ratio", "GiB",
})  # fmt: skip

MIB, GIB = 1 << 20, 1 << 30  # bytes

Grade = Literal["pass", "warn", "fail"]


def number(value: float) -> str:
    """A value as people read it.

    At least four significant digits, no trailing zeros, whole numbers without a decimal point.
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e12:
        return str(int(value))
    return f"{value:.1f}".removesuffix(".0") if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


class LimitError(ValueError):
    """A limit that is none; `field` is the wrong one, None where it is no single one."""

    def __init__(self, text: str, field: str | None = None) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Limit:
    """Bounds for one measurement, and where they come from.

    A text as `basis` is of a data file or the machine file; what the code composes is a message.
    `low` and `high` decide; `warn_low` and `warn_high` only warn. Comparison is exact and a bound
    itself is an allowed value. Raises LimitError when neither `low` nor `high` is given, a bound is
    not finite, bounds are out of order, the unit is not one of UNITS, or the basis is empty.
    """

    unit: str
    basis: Text
    low: float | None = None
    high: float | None = None
    warn_low: float | None = None
    warn_high: float | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            from acceptance.core.nearest import cure  # only for somebody's slip

            meant = cure(self.unit, UNITS, f"one of {', '.join(sorted(UNITS))}", 2)
            raise LimitError(f"unit {self.unit!r} is none that rigproof knows: {meant}", "unit")
        if isinstance(self.basis, str) and not self.basis.strip():
            raise LimitError(
                "basis is empty: say in one sentence where the limit comes from", "basis"
            )
        if self.low is None and self.high is None:
            raise LimitError("a limit needs low, high, or both")
        for name in ("low", "high", "warn_low", "warn_high"):
            bound = getattr(self, name)
            if bound is not None and not math.isfinite(bound):
                raise LimitError(f"{name} is {bound}: a limit must be a finite number", name)
        ladder = [
            bound
            for bound in (self.low, self.warn_low, self.warn_high, self.high)
            if bound is not None
        ]
        if ladder != sorted(ladder):
            raise LimitError("bounds are out of order: low <= warn_low <= warn_high <= high")

    def grade(self, value: float) -> Grade:
        """Pass, warn or fail for a value in this limit's unit.

        NaN fails, because no comparison with it is true.
        """
        if not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        ):
            return "fail"
        return (
            "pass"
            if (self.warn_low is None or value >= self.warn_low)
            and (self.warn_high is None or value <= self.warn_high)
            else "warn"
        )
