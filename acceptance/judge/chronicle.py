"""A machine's nights as a person looks at them: every measurement's course with what it comes to, and what changed most. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from acceptance.judge import course
from acceptance.judge.course import Course, Summary
from acceptance.judge.noise import NoiseBook

MOST = 10  # courses that are told apart because they changed: a screen's worth

# Facts in which an era differs from the one before it: name, text before and after; None where one has none of that name.
Changes = tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One course with its summary. `began` has the places of points with which another era begins; `born` is the baseline's value.

    `comparable` is false where two nights' values say nothing of each other.
    """

    course: Course
    summary: Summary
    began: tuple[tuple[int, Changes], ...] = ()
    born: float | None = None
    comparable: bool = True


@dataclass(frozen=True, slots=True)
class Night:
    """One recorded run: when it began (UTC, ISO 8601), its verdict, and why it is no measure for others (None where it is)."""

    run_id: str
    utc: str
    verdict: str
    apart: str | None
    postponed: bool


@dataclass(frozen=True, slots=True)
class Chronicle:
    """The last `shown` of the nights of a machine, of which there are `recorded` in all; `others` are machines with a history beside it.

    `baseline` is the run that accepted the machine, None where none did.
    """

    machine_id: str
    recorded: int
    shown: tuple[Night, ...]
    rows: tuple[Row, ...]
    others: tuple[str, ...] = ()
    baseline: str | None = None

    def can_tell(self) -> bool:
        """Whether anything has nights enough to tell a change; where nothing has, that none is found says nothing."""
        return any(row.comparable and row.summary.trend is not None for row in self.rows)

    def changed(self) -> tuple[Row, ...]:
        """The courses whose last nights lie further from those before than noise explains, the furthest first; MOST of them."""
        found = [
            (row.summary.times, row) for row in self.rows if row.comparable and row.summary.trend in ("up", "down")
        ]
        return tuple(row for _, row in sorted(found, key=itemgetter(0), reverse=True)[:MOST])


def row(
    found: Course,
    book: NoiseBook,
    *,
    virtual: bool,
    facts: Mapping[int, Mapping[str, str]],
    born: float | None = None,
) -> Row:
    """One course summed up. `facts` are those of each era by its number; `virtual` says that the machine is one."""
    general = book.spread(found.measurement, found.unit, same_part=True, virtual=virtual)
    before, _ = course.recent(found.points)
    return Row(
        found,
        course.summary(found, book.repeated(general, before)),
        _began([point.era for point in found.points], facts),
        born,
        book.incomparable(found.measurement) is None,
    )


def _began(eras: Sequence[int], facts: Mapping[int, Mapping[str, str]]) -> tuple[tuple[int, Changes], ...]:
    pairs = enumerate(pairwise(eras), start=1)
    return tuple((place, _changes(facts[was], facts[now])) for place, (was, now) in pairs if was != now)


def _changes(was: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    names = sorted({*was, *now})
    return tuple((name, was.get(name), now.get(name)) for name in names if was.get(name) != now.get(name))
