"""Where a run is disturbed: points that are random, spread evenly over it, and the same again
for the same seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Point:
    """One disturbance: `part` (0 to 1) is how far into whatever its kind is spread over;
    `number` counts from 1.
    """

    number: int
    kind: str
    part: float

    def choice(self, seed: int) -> random.Random:
        """Whatever else is left to chance at this point."""
        return random.Random(f"{seed}/{self.number}/{self.kind}")


def spread(kinds: Sequence[str], count: int, seed: int) -> tuple[Point, ...]:
    """`count` points, the kinds in turn.

    Of n points of a kind there is one in each nth part, in no order.

    A kind that is named twice gets twice as many.
    """
    chance = random.Random(seed)
    order = [kinds[number % len(kinds)] for number in range(count)]
    parts = {kind: _parts(total, chance) for kind, total in Counter(order).items()}
    return tuple(
        Point(number, kind, next(parts[kind])) for number, kind in enumerate(order, start=1)
    )


def _parts(count: int, chance: random.Random) -> Iterator[float]:
    found = [(slot + chance.random()) / count for slot in range(count)]
    chance.shuffle(found)
    return iter(found)


def moment(part: float, marks: Sequence[float]) -> tuple[int, float]:
    """Which of these marks to wait for, and for how many seconds from there on, to be this part
    into a course.

    `marks` are seconds from the beginning of a course that was measured, in order: the first is 0,
    the last the end. A course that is slower than the measured one is met at the same place for as
    long as it passes the same marks.
    """
    seconds = part * marks[-1]
    for number, (mark, following) in enumerate(pairwise(marks)):
        if seconds < following:
            return number, seconds - mark
    raise ValueError(f"{part} is no part of a course of {marks[-1]} s")
