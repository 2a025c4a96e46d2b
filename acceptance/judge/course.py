"""The course of one measurement of one part over its nights: what is usual, how far it scatters, and where it is going. Pure.

Nothing here decides: it is what a person looks at. What decides is `drift`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from acceptance.judge.noise import Spread

RECENT = (
    7  # nights whose median is set beside that of the nights before: a week, so that one night does not make a trend
)

Trend = Literal["up", "down", "level"]


class Point(NamedTuple):
    """One night's value in the unit of its course; `day` as in `nights.Look`, `era` a number that changes where the era does.

    `held` says that it is a measure for others: from a whole run that came to its end, and within its absolute limit.
    """

    run_id: str
    day: float
    value: float
    again: float | None
    outside: bool
    unsteady: bool
    held: bool
    era: int


@dataclass(frozen=True, slots=True)
class Course:
    """One measurement of one part, oldest night first. `serial` is the part's identity, None where it has none."""

    check: str
    measurement: str
    component: str
    unit: str
    serial: str | None
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a course comes to, in its unit. Median and deviation (MAD) are those of the usual nights of its last era.

    `before` is the median of the nights before the last ones, `change` how far that of the last ones lies from it, `times` how often
    that holds what the noise allows (infinite where it allows nothing), and `trend` its direction; None of all four where there are too
    few nights to tell.
    """

    nights: int
    outside: int
    last: float | None
    median: float | None
    deviation: float | None
    before: float | None = None
    change: float | None = None
    times: float | None = None
    trend: Trend | None = None


def usual(points: Sequence[Point]) -> list[float]:
    """The values of the nights of the last era that are a measure for others, without those that were outside."""
    era = points[-1].era if points else None
    return [point.value for point in points if point.era == era and point.held and not point.outside]


def recent(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """The values of the last era that are a measure for others, parted: those before the last RECENT nights, and these."""
    era = points[-1].era if points else None
    values = [point.value for point in points if point.era == era and point.held]
    return values[:-RECENT], values[-RECENT:]


def summary(course: Course, spread: Spread) -> Summary:
    """Sum up a course. `spread` is what may lie between two values of this part, as `NoiseBook.repeated` has it of the nights before."""
    points = course.points
    values = usual(points)
    middle = statistics.median(values) if values else None
    told = Summary(
        nights=len(points),
        outside=sum(point.outside for point in points),
        last=points[-1].value if points else None,
        median=middle,
        deviation=statistics.median(abs(value - middle) for value in values) if middle is not None else None,
    )
    before, after = recent(points)
    if len(before) < RECENT:
        return told
    was, now = statistics.median(before), statistics.median(after)
    change, allowed = now - was, spread.between(was, now)
    times = abs(change) / allowed if allowed else float("inf") if change else 0.0
    trend: Trend = "level" if times <= 1.0 else "up" if change > 0 else "down"
    return Summary(told.nights, told.outside, told.last, told.median, told.deviation, was, change, times, trend)
