"""A GPU as the power load uses it: products in groups, and waves that follow its own clock.

A GPU's clock held against the host's, and how far two GPUs may be apart. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Protocol

from acceptance.core.dtype import DtypeName

# When the GPU was asked on the host's clock, what its own said, and when the answer was there; ns.
Answer = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Alignment:
    """How far the GPU's clock is ahead of the host's, and how wrong that may be at most; ns."""

    ahead_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a GPU's clock moved against the host's between two alignments: at least, at most."""

    least_ns: int
    most_ns: int


def aligned(answers: Iterable[Answer]) -> Alignment:
    """By the quickest of the answers: the GPU told its time at some moment while it was waited for.

    Raises ValueError without one.
    """
    took, told, middle = min(
        (answered - asked, told, (asked + answered) // 2) for asked, told, answered in answers
    )
    return Alignment(told - middle, took // 2 + 1)


def drift(begin: Alignment, end: Alignment) -> Drift:
    """What the clock moved from one alignment to the other."""
    moved, error = end.ahead_ns - begin.ahead_ns, begin.error_ns + end.error_ns
    return Drift(moved - error, moved + error)


def apart_ns(drifts: Iterable[Drift]) -> int | None:
    """The most by which two of these GPUs may have been apart; None for fewer than two.

    They were aligned at the begin of the step, and none afterwards.
    """
    pairs = permutations(drifts, 2)
    return max((one.most_ns - other.least_ns for one, other in pairs), default=None)


GROUP = 8  # most products that are queued at once


@dataclass(frozen=True, slots=True)
class Compared:
    """Products or chunks of work that have ended, each compared bit for bit with the first one.

    `seconds` is how long they took by the GPU's clock, their comparison included; `wrong` the
    wrong elements of each wrong one; `waves` those in which the GPU worked.
    """

    right: int
    wrong: tuple[int, ...]
    seconds: float = 0.0
    waves: int = 0


class Device(Protocol):
    """One GPU. Nothing but `compared`, for a limited time, and `align` waits for it."""

    about: dict[str, Any]  # its name, UUID and library
    dtype: DtypeName  # of the products

    def start(self, count: int) -> Any:
        """Queue `count` products, at most GROUP, and their comparison; a ticket for `compared`."""

    def compared(self, ticket: Any) -> Compared:
        """Wait for what was queued. Raises LoadError where the GPU hangs or compared nothing."""

    def waves(self, begin_s: float, half_s: float, count: int) -> Any:
        """Queue waves, the first at this moment of the monotonic clock; a ticket as of `start`."""

    def align(self) -> Alignment:
        """Hold its clock against the monotonic one: waves that are queued from here on follow it.

        Nothing may be queued.
        """


# Makes the device in its own process; a second call is never made there.
Make = Callable[[], Device]
