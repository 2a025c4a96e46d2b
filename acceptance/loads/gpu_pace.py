"""A GPU kept at work for a given time without a pause, and the rate it settles at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from acceptance.loads.gpu_card import Card, times_for

BATCH_S = 0.02
_AHEAD = 3  # batches given to the GPU before the first of them is waited for

Marks = Sequence[tuple[float, int]]  # seconds since the beginning, and pieces of work done by then


def sustain(
    card: Card, work: Callable[[], None], seconds: float, one_s: float, tick: Callable[[float], None]
) -> list[tuple[float, int]]:
    """Work of about `one_s` a piece, in batches, until the card has been at it for `seconds`; its course, by its own clock.

    `tick` is told the seconds done, once a batch. The last batches are waited for.
    """
    batch = times_for(BATCH_S, one_s)
    begin = card.mark()
    given: deque[Any] = deque()
    marks = [(0.0, 0)]
    while marks[-1][0] < seconds or given:
        over_s = marks[-1][0] + len(given) * batch * one_s  # when the last batch that was given ends, about
        if (over_s < seconds and len(given) < _AHEAD) or not given:
            for _ in range(batch):
                work()
            given.append(card.mark())
        else:
            marks.append((card.seconds(begin, given.popleft()), marks[-1][1] + batch))
            tick(marks[-1][0])
    return marks


def settled(marks: Marks) -> float:
    """Pieces of work a second over the last half of a course: from the last mark in its first half to its end."""
    end_s, done = marks[-1]
    begin_s, before = [mark for mark in marks if mark[0] <= end_s / 2][-1]
    return (done - before) / (end_s - begin_s)
