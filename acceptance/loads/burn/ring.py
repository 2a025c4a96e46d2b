"""The ring of results: what lies where, and when it is compared. Pure.

Memory holds `groups` groups of results. The oldest group is overwritten next, and is compared
before that; so a result lies in memory for as long as the whole ring takes, and a cell that loses
it is seen as well as a product that was wrong. Comparing begins AHEAD groups before, so that its
answer is there in time and the GPU never waits for the processor that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

AHEAD = 2
MIN_GROUPS = AHEAD + 2  # groups that a ring must have


def division(slots: int, most: int, shapes: int) -> tuple[int, int]:
    """How so many places for results are divided: results in a group (`most` at most), and groups.

    The larger group of those that waste the fewest places, within a twentieth of them. The number
    of groups is no multiple of the number of shapes: each place then has another shape's result in
    it before, so that a product that was never written shows. Raises ValueError where the places
    are too few.
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
    """A group of results: the number of its first product, its shape, when it was given to the
    GPU, and its comparison once begun.
    """

    group: int
    number: int
    shape: int
    made_s: float
    ticket: Any = None


class ResultRing:
    """Which group is next, and what lies in each."""

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
        """What is to be compared now: the group that comes AHEAD of the next, unless it is empty
        or begun already.
        """
        made = self._held[(self._next + AHEAD) % len(self._held)]
        return made if made is not None and made.ticket is None else None

    def pop(self) -> ResultGroup | None:
        """What lies in the next group, which is empty after this."""
        made, self._held[self._next] = self._held[self._next], None
        return made

    def push(self, made: ResultGroup) -> None:
        """The next group has been filled; the one after it is next."""
        self._held[self._next] = made
        self._next = (self._next + 1) % len(self._held)

    def drain(self) -> list[ResultGroup]:
        """All that lies in the ring, oldest first."""
        order = self._held[self._next :] + self._held[: self._next]
        return [made for made in order if made is not None]
