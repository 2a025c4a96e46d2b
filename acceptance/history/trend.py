"""The trend of each measurement over a machine's nights, and the report of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Literal

import msgspec

from acceptance.core.bounds import spread_of
from acceptance.core.parts import Component
from acceptance.history.night import Night
from acceptance.history.noise import NoiseBook, Spread

# Nights whose median is compared with that of the nights before: a week, so that one night is no
# trend.
RECENT = 7

TrendDirection = Literal["up", "down", "level"]


class TrendPoint(msgspec.Struct, frozen=True, gc=False):
    """One night's value, in the unit of its series.

    `day` is as in `reference_builder.NightValue`; `era` is a number that changes with the era.
    `held` says that later nights are compared with it: the run was whole, and the value within its
    absolute limit.
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

    `serial` is the part's identity, None if it has none.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    serial: str | None
    points: tuple[TrendPoint, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a series, in its unit.

    `median` and `deviation` (MAD) are those of the usual nights of the last era.

    `before` is the median of the nights before the last ones, `change` the distance of the last
    ones' median from it, `times` that distance as a multiple of the noise (infinite if the noise
    allows nothing), and `trend` its direction. All four are None if there are too few nights.
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
    """The values of the last era's nights that are comparable and were not outside."""
    era = points[-1].era if points else None
    return [
        point.value for point in points if point.era == era and point.held and not point.outside
    ]


def split_recent(points: Sequence[TrendPoint]) -> tuple[list[float], list[float]]:
    """The comparable values of the last era: those before the last RECENT nights, and the last."""
    era = points[-1].era if points else None
    values = [point.value for point in points if point.era == era and point.held]
    return values[:-RECENT], values[-RECENT:]


def summary(
    points: Sequence[TrendPoint], before: Sequence[float], after: Sequence[float], spread: Spread
) -> Summary:
    """Summarize a series.

    `before` and `after` are from `split_recent`. `spread` is the allowed difference between two
    values of this part, from `NoiseBook.repeated` over the nights before.
    """
    values = usual_values(points)
    middle = median(values) if values else None
    result = Summary(
        nights=len(points),
        outside=sum(point.outside for point in points),
        last=points[-1].value if points else None,
        median=middle,
        deviation=spread_of(values, middle) if middle is not None else None,
    )
    if len(before) < RECENT:
        return result
    was, now = median(before), median(after)
    change, allowed = now - was, spread.between(was, now)
    times = abs(change) / allowed if allowed else float("inf") if change else 0.0
    trend: TrendDirection = "level" if times <= 1.0 else "up" if change > 0 else "down"
    return replace(result, before=was, change=change, times=times, trend=trend)


MAX_CHANGES = 10  # series listed as changed: a screenful

# Facts in which an era differs from the one before it: name, text before, text after; None if an
# era lacks it.
Changes = tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class TrendRow:
    """One series with its summary.

    `began` has the indexes of points with which another era begins; `born` is the baseline's value.
    `comparable` is false if two nights' values cannot be compared.
    """

    series: TrendSeries
    summary: Summary
    began: tuple[tuple[int, Changes], ...] = ()
    born: float | None = None
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class TrendReport:
    """The trend report of a machine.

    `shown` are its last nights, `recorded` is how many there are in all, `others` are machines with
    a history in the same folder. `baseline` is the run that accepted the machine, None if none did.
    `headline` is why the last of them did not pass, as far as its folder is still there.
    """

    machine_id: str
    recorded: int
    shown: tuple[Night, ...]
    rows: tuple[TrendRow, ...]
    others: tuple[str, ...] = ()
    baseline: str | None = None
    headline: str | None = None

    def can_tell(self) -> bool:
        """Whether any series has enough nights to show a change.

        If none has, an empty list of changes says nothing.
        """
        return any(row.comparable and row.summary.trend is not None for row in self.rows)

    def largest_changes(self) -> tuple[TrendRow, ...]:
        """The series whose last nights differ from those before by more than noise, largest first.

        At most MAX_CHANGES.
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
    """One series with its summary.

    `facts` are those of each era by its number; `virtual` says that the machine is a VM.
    """
    general = book.spread(series.measurement, series.unit, same_part=True, virtual=virtual)
    before, after = split_recent(series.points)
    return TrendRow(
        series,
        summary(series.points, before, after, book.repeated(general, before)),
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
