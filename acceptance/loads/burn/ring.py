"""The ring of results: the content of each place, and when it is compared. Pure.

Memory holds `groups` groups of results. The oldest group is overwritten next, and is compared
before that. So a result lies in memory for one round of the ring, and a cell that loses its content
is found as well as a wrong product. The comparison begins AHEAD groups earlier, so that its result
arrives in time and the GPU never waits for the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

AHEAD = 2
MIN_GROUPS = AHEAD + 2  # minimum number of groups of a ring


def division(slots: int, most: int, shapes: int) -> tuple[int, int]:
    """Divide `slots` places into groups: results in a group (`most` at most), and number of groups.

    Among the divisions that use the most places, or at most a twentieth of `slots` fewer, the one
    with the largest group wins. The number of groups is no multiple of the number of shapes, so
    each place previously held a result of another shape, and a product that was never written is
    found. Raises ValueError where there are too few places.
    """
    found = []
    for group in range(1, most + 1):
        groups = slots // group
        groups -= groups % shapes == 0
        if groups >= MIN_GROUPS:
            found.append((group, groups))
    if not found:
        raise ValueError(
            f"a ring needs {MIN_GROUPS} groups of results, and there is memory for {slots} results"
        )
    best = max(group * groups for group, groups in found)
    return max(one for one in found if one[0] * one[1] >= best - slots / 20)


@dataclass(slots=True)
class ResultGroup:
    """A group of results, and its comparison once begun.

    `number` is that of its first product, `made_s` the time at which it was queued, in seconds.
    """

    group: int
    number: int
    shape: int
    made_s: float
    ticket: Any = None


class ResultRing:
    """The next group to overwrite, and the content of every group."""

    def __init__(self, groups: int) -> None:
        if groups < MIN_GROUPS:
            raise ValueError(
                f"a ring needs {MIN_GROUPS} groups of results, and there is memory for {groups}"
            )
        self._held: list[ResultGroup | None] = [None] * groups
        self._next = 0

    @property
    def next(self) -> int:
        """The group to be overwritten next."""
        return self._next

    def ahead(self) -> ResultGroup | None:
        """The group to compare now: the one AHEAD of the next.

        None where that is empty or its comparison has begun.
        """
        made = self._held[(self._next + AHEAD) % len(self._held)]
        return made if made is not None and made.ticket is None else None

    def pop(self) -> ResultGroup | None:
        """Remove and return the content of the next group."""
        made, self._held[self._next] = self._held[self._next], None
        return made

    def push(self, made: ResultGroup) -> None:
        """Record that the next group was filled, and advance."""
        self._held[self._next] = made
        self._next = (self._next + 1) % len(self._held)

    def drain(self) -> list[ResultGroup]:
        """The groups in the ring, oldest first."""
        order = self._held[self._next :] + self._held[: self._next]
        return [made for made in order if made is not None]
