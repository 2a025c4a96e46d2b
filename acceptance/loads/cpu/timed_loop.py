"""The timed loop of a compute load, independent of the computation and its check.

Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

Step = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A warm worker's message.

    The digest of its first product, whether the integer check passed, and the library used.
    """

    digest: str
    right: bool
    library: str


@dataclass(frozen=True, slots=True)
class LoopResult:
    """A worker's result between start and deadline.

    The number of products, the number of wrong ones, and the seconds of its own loop.
    """

    products: int
    wrong: int
    seconds: float


def run_loop(until: float, multiply: Step, check: Step) -> tuple[int, float]:
    """Call multiply(0), check(0), multiply(1), check(1), ... until the monotonic time `until`.

    Each is called at least once. Returns the number of rounds, and the seconds from the first call
    to the end of the last.
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
