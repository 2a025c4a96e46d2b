"""A waiver: a known shortfall that the machine file accepts, with its bound."""

from __future__ import annotations

from acceptance.core.strict import Strict, Text


class Waiver(Strict, frozen=True):
    """`[[waiver]]`: a known shortfall with its bound.

    It names a measurement and the worst value accepted, or a check that may be skipped. `component`
    may be a shell pattern (`disk:*`). `worst` is in the unit of the measurement's limit.
    """

    reason: Text
    measurement: Text | None = None
    skip: Text | None = None
    component: Text | None = None
    worst: float | None = None

    def __str__(self) -> str:
        what = self.measurement or self.skip or ""
        return f"{what} on {self.component}" if self.component else what
