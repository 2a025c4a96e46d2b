"""The timed loop of a compute load, apart from what it computes and how it is checked.

Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker is warm: the digest of its first product, whether the integer check found it
    right, and what made it.
    """

    digest: str
    right: bool
    library: str


@dataclass(frozen=True, slots=True)
class LoopResult:
    """What a worker did between start and deadline: products made, how many were wrong, and the
    seconds of its own loop.
    """

    products: int
    wrong: int
    seconds: float


def run_loop(until: float, multiply: Step, check: Step) -> tuple[int, float]:
    """multiply(0), check(0), multiply(1), check(1), ... until the monotonic clock passes `until`;
    once at least.

    Returns how many, and the seconds from the first call to the end of the last.
    """
    count = 0
    began = time.monotonic()
    while True:
        multiply(count)
        check(count)
        count += 1
        now = time.monotonic()
        if now >= until:
            return count, now - began
