"""A GPU for tests: its own clock goes on by what its work costs."""

from __future__ import annotations

from collections.abc import Callable


class FakeCard:
    """Work takes `cost(seconds so far)` seconds of its clock; marks count that clock, and
    waiting moves nothing.
    """

    def __init__(
        self, cost: Callable[[float], float] = lambda _: 0.001, free: int = 1 << 40
    ) -> None:
        self.cost, self.free = cost, free
        self.now = 0.0
        self.done = 0
        self.waited: list[float] = []

    def work(self) -> None:
        self.now += self.cost(self.now)
        self.done += 1

    def mark(self) -> float:
        return self.now

    def seconds(self, begin: float, end: float) -> float:
        self.waited.append(end)
        return end - begin

    def free_bytes(self) -> int:
        return self.free
