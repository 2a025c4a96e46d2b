"""What is asked of the burn, and what is known of each format while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acceptance.loads.burn_role import Proof
from acceptance.loads.burn_shape import Shape, shapes
from acceptance.loads.gpu_dtypes import Dtype

TURN_S = 30.0  # of one format, about, before the next has its turn


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked: formats that the GPU has, seconds of all of them together, and whether plain products are timed beside them.

    `slow` is the share of its rate that the GPU is to lose from the second lap on, where that is injected; `divisors` say by format
    how much less wide its matrices are (`burn_shape.divisor_for`).
    """

    dtypes: tuple[Dtype, ...]
    seconds: float
    plain: bool = False
    slow: float = 0.0
    divisors: Mapping[str, int] = field(default_factory=dict)

    @property
    def laps(self) -> int:
        """How often each format has its turn: twice at least."""
        return max(2, round(self.seconds / TURN_S / max(1, len(self.dtypes))))

    @property
    def turn_s(self) -> float:
        """Seconds of one turn."""
        return self.seconds / self.laps / max(1, len(self.dtypes))


@dataclass(slots=True)
class Format:
    """What is known of one format so far.

    `first_last` are TFLOP/s of the first and of the last lap; `work` and `plain` sum operations and seconds.
    """

    dtype: Dtype
    divisor: int
    most: int  # results compared at once
    proof: Proof
    products: int = 0
    wrong: int = 0
    told: int = 0
    first_last: tuple[float, float] = (0.0, 0.0)
    work: tuple[float, float] = (0.0, 0.0)
    plain: tuple[float, float] = (0.0, 0.0)
    changed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """As they are divided."""
        return shapes(self.dtype, self.divisor)
