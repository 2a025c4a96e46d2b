"""The trend of each measurement over the nights of a machine, and the report of them. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

from acceptance.history.noise import NoiseBook, Spread

# nights whose median is set beside that of the nights before: a week, so that one night does not
# make a trend
RECENT = 7

TrendDirection = Literal["up", "down", "level"]


class TrendPoint(NamedTuple):
    """One night's value in the unit of its course; `day` as in `nights.Look`, `era` a number that
    changes where the era does.

    `held` says that it is a measure for others: from a whole run that came to its end, and within
    its absolute limit.
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
class TrendSeries:
    """One measurement of one part, oldest night first.

    `serial` is the part's identity, None where it has none.
    """

    check: str
    measurement: str
    component: str
    unit: str
    serial: str | None
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a course comes to, in its unit.

    Median and deviation (MAD) are those of the usual nights of its last era.

    `before` is the median of the nights before the last ones, `change` how far that of the last
    ones lies from it, `times` how often that holds what the noise allows (infinite where it allows
    nothing), and `trend` its direction; None of all four where there are too few nights to tell.
    """

    nights: int
    outside: int
    last: float | None
    median: float | None
    deviation: float | None
    before: float | None = None
    change: float | None = None
    times: float | None = None
    trend: TrendDirection | None = None


def usual_values(points: Sequence[TrendPoint]) -> list[float]:
    """The values of the nights of the last era that are a measure for others,
    without those that were outside.
    """
    era = points[-1].era if points else None
    return [
        point.value for point in points if point.era == era and point.held and not point.outside
    ]


def split_recent(points: Sequence[TrendPoint]) -> tuple[list[float], list[float]]:
    """The values of the last era that are a measure for others, parted: those before the last
    RECENT nights, and these.
    """
    era = points[-1].era if points else None
    values = [point.value for point in points if point.era == era and point.held]
    return values[:-RECENT], values[-RECENT:]


def summary(course: TrendSeries, spread: Spread) -> Summary:
    """Sum up a course.

    `spread` is what may lie between two values of this part, as `NoiseBook.repeated` has it of the
    nights before.
    """
    points = course.points
    values = usual_values(points)
    middle = statistics.median(values) if values else None
    result = Summary(
        nights=len(points),
        outside=sum(point.outside for point in points),
        last=points[-1].value if points else None,
        median=middle,
        deviation=statistics.median(abs(value - middle) for value in values)
        if middle is not None
        else None,
    )
    before, after = split_recent(points)
    if len(before) < RECENT:
        return result
    was, now = statistics.median(before), statistics.median(after)
    change, allowed = now - was, spread.between(was, now)
    times = abs(change) / allowed if allowed else float("inf") if change else 0.0
    trend: TrendDirection = "level" if times <= 1.0 else "up" if change > 0 else "down"
    return Summary(
        result.nights,
        result.outside,
        result.last,
        result.median,
        result.deviation,
        was,
        change,
        times,
        trend,
    )


MAX_CHANGES = 10  # courses that are told apart because they changed: a screen's worth

# Facts in which an era differs from the one before it: name, text before and after; None where one
# has none of that name.
Changes = tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class TrendRow:
    """One course with its summary.

    `began` has the places of points with which another era begins; `born` is the baseline's value.

    `comparable` is false where two nights' values say nothing of each other.
    """

    course: TrendSeries
    summary: Summary
    began: tuple[tuple[int, Changes], ...] = ()
    born: float | None = None
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class TrendNight:
    """One recorded run: when it began (UTC, ISO 8601), its verdict, and why it is no measure for
    others (None where it is).
    """

    run_id: str
    utc: str
    verdict: str
    apart: str | None
    postponed: bool


@dataclass(frozen=True, slots=True)
class TrendReport:
    """The last `shown` of the nights of a machine, of which there are `recorded` in all; `others`
    are machines with a history beside it.

    `baseline` is the run that accepted the machine, None where none did.
    """

    machine_id: str
    recorded: int
    shown: tuple[TrendNight, ...]
    rows: tuple[TrendRow, ...]
    others: tuple[str, ...] = ()
    baseline: str | None = None

    def can_tell(self) -> bool:
        """Whether anything has nights enough to tell a change; where nothing has, that none is
        found says nothing.
        """
        return any(row.comparable and row.summary.trend is not None for row in self.rows)

    def largest_changes(self) -> tuple[TrendRow, ...]:
        """The courses whose last nights lie further from those before than noise explains, the
        furthest first; MAX_CHANGES of them.
        """
        found = [
            (row.summary.times, row)
            for row in self.rows
            if row.comparable and row.summary.trend in ("up", "down")
        ]
        return tuple(row for _, row in sorted(found, key=itemgetter(0), reverse=True)[:MAX_CHANGES])


def row(
    series: TrendSeries,
    book: NoiseBook,
    *,
    virtual: bool,
    facts: Mapping[int, Mapping[str, str]],
    baseline: float | None = None,
) -> TrendRow:
    """One course summed up.

    `facts` are those of each era by its number; `virtual` says that the machine is one.
    """
    general = book.spread(series.measurement, series.unit, same_part=True, virtual=virtual)
    before, _ = split_recent(series.points)
    return TrendRow(
        series,
        summary(series, book.repeated(general, before)),
        _era_starts([point.era for point in series.points], facts),
        baseline,
        book.incomparable(series.measurement) is None,
    )


def _era_starts(
    eras: Sequence[int], facts: Mapping[int, Mapping[str, str]]
) -> tuple[tuple[int, Changes], ...]:
    pairs = enumerate(pairwise(eras), start=1)
    return tuple(
        (place, _changes(facts[was], facts[now])) for place, (was, now) in pairs if was != now
    )


def _changes(was: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    names = sorted({*was, *now})
    return tuple(
        (name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name)
    )
