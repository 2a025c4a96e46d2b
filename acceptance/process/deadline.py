"""A deadline: the moment by which an operation must end, passed down from caller to callee."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, in seconds.

    A timeout that is passed down starts anew at each level, so timeouts add up; a deadline does
    not.
    """

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline this many seconds from now."""
        return cls(time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self.at - time.monotonic())

    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self.remaining() == 0.0

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or `seconds` from now if that is earlier."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at)
