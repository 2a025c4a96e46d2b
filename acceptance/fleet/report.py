"""A report of a fleet: what all its views show. Pure.

It is made of verdicts in folders (the fleet now), or of a night that was kept. A kept night is held
against the clock like a verdict: where it is no longer fresh, no machine of it is a PASS.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptance.core.grouping import grouped
from acceptance.core.message import Message, Text, english
from acceptance.core.parts import Component
from acceptance.core.verdict import WORDS, VerdictWord, worst_word
from acceptance.fleet import night
from acceptance.fleet.comparison import Comparison
from acceptance.fleet.identity import Identities, identify
from acceptance.fleet.night import Judged, NightTable, Row
from acceptance.fleet.verdicts import GROUP_KEYS, Collection, night_of

# Rates that say most of a machine, for views with room for a few; of each the lowest component.
KEY_RATES = (
    *("gemm_bf16", "gemm_f32", "copy_h2d", "copy_d2h", "copy_own_d2d", "copy_own_p2p"),
    *("collective_all_reduce", "memory_copy"),
)
BINS = 40  # of a distribution
_FACTS = tuple(key for key in GROUP_KEYS if key != "machine_file")


class Unread(NamedTuple):
    """What could not be read; `machine` is None where that belongs to none.

    The message is in English where it was kept.
    """

    machine: str | None
    message: Text


@dataclass(frozen=True, slots=True)
class FleetReport(night.Fleet):
    """A fleet at one moment.

    `night` is the evening of the last kept night, None for the verdicts in folders. `due` and
    `others` (not due) are in the order of `night.Judged`. `reasons` say why machines are no PASS.
    `last` is when the newest run of each machine began, one that is not fresh included. `values`
    has the machines that are due. `before` is the night before, with its evening. `remarks` are as
    of `night.Judged`.
    """

    now: datetime
    night: str | None
    due: tuple[Row, ...]
    others: tuple[Row, ...]
    reasons: Mapping[str, Text]
    troubles: tuple[Unread, ...]
    last: Mapping[str, datetime]
    values: NightTable
    before: tuple[str, NightTable] | None = None
    compared: Comparison | None = None
    remarks: tuple[Message, ...] = ()

    @property
    def other_troubles(self) -> list[Text]:
        """The troubles that are not already the reason of a due machine."""
        due = {row.machine for row in self.due}
        return [
            one.message
            for one in self.troubles
            if one.machine not in due or self.reasons.get(one.machine or "") != one.message
        ]


def of_folders(found: Collection, judged: Judged, now: datetime) -> FleetReport:
    """The report of the verdicts in some folders."""
    standings = (*judged.due, *judged.others)
    table = night.newest_table(judged.due, found.series)
    rows = {row.machine: row for row in table.rows}
    others = night.newest_table(judged.others, found.series).rows
    last = {
        name: max(moments)
        for name, held in found.verdicts.items()
        if (moments := [one.began for one in held if one.began is not None])
    }
    return FleetReport(
        now,
        None,
        tuple(rows[one.machine] for one in judged.due),
        others,
        {one.machine: one.reason for one in standings if one.reason is not None},
        tuple(Unread(one.machine, one.message) for one in judged.troubles),
        last,
        table,
        remarks=judged.remarks,
    )


def of_nights(
    nights: Mapping[str, NightTable], due: Names[str] | None, now: datetime, fresh: timedelta
) -> FleetReport:
    """The report of kept nights: of each machine the newest run counts, or a FAIL that stands.

    `due` names those that are due, None all that are there. What could not be read is what the
    newest night knows of each folder. Raises ValueError where there is no night.
    """
    dates = sorted(nights)
    table = functools.reduce(night.merge, (nights[date] for date in dates))
    identities = identify(
        row.identity(row.began)
        for date in dates
        for row in nights[date].rows
        if row.began is not None
    )
    chosen = None if due is None else set(due)
    ended = {row.machine: row.ended for row in table.rows}
    judged = [
        _elsewhere(identities, ended, *_aged(row, now, fresh))
        for row in (*table.rows, *_absent(table, due))
    ]
    rows = sorted((row for row, _ in judged), key=night.order)
    began = grouped(
        (row.machine, row.began)
        for date in dates
        for row in nights[date].rows
        if row.began is not None
    )
    return FleetReport(
        now,
        max(with_runs(nights), default=max(nights)),
        tuple(row for row in rows if chosen is None or row.machine in chosen),
        tuple(row for row in rows if chosen is not None and row.machine not in chosen),
        {row.machine: reason for row, reason in judged if reason is not None},
        tuple(_troubles(nights, table)),
        {machine: max(moments) for machine, moments in began.items()},
        table if chosen is None else _only(table, chosen),
        remarks=(
            *night.copies(identities),
            *night.limits(
                (row.machine, dict(row.groups))
                for row in rows
                if chosen is None or row.machine in chosen
            ),
        ),
    )


def _troubles(nights: Mapping[str, NightTable], whole: NightTable) -> Iterator[Unread]:
    """What could not be read of the folders when each of them was read last."""
    last = max(nights)
    if nights[last].troubles is None:
        yield Unread(
            None,
            Message(
                english(
                    "fleet_troubles_unknown",
                    "the night of {night} does not say what could not be read, because an older "
                    "rigproof kept it: run `rigproof fleet collect` again",
                ),
                {"night": last},
            ),
        )
    for troubles in (whole.troubles or {}).values():
        yield from (Unread(machine, text) for machine, text in troubles)


def _elsewhere(
    identities: Identities, ended: Mapping[str, Names[str]], row: Row, reason: Text | None
) -> tuple[Row, Text | None]:
    """A kept machine and why it is no PASS, where its machine was tested later by another name.

    `ended` has the FAILs that do not stand any more, by the name under which they were ended.
    """
    later = None if row.began is None else identities.later(row.identity(row.began))
    if later is None:
        return row, reason
    stands = row.verdict == "FAIL" and row.run_id not in ended.get(later.run.name, ())
    passed = later.kind == "machine" and later.run.passed and not stands
    word = "UNJUDGED" if passed else worst_word((row.verdict, "UNJUDGED"))
    return Row(row.machine, word), night.of_another(later, row.parts)


def _absent(table: NightTable, due: Names[str] | None) -> Iterator[Row]:
    there = {row.machine for row in table.rows}
    for name in dict.fromkeys(due or ()):
        if name not in there:
            yield Row(name, "UNJUDGED", missing=True)


def _aged(row: Row, now: datetime, fresh: timedelta) -> tuple[Row, Text | None]:
    """A kept machine as it stands now, and why it is no PASS."""
    if row.began is None:
        word = worst_word((row.verdict, "UNJUDGED"))
        return replace(row, verdict=word), row.reason or Message("fleet_missing")
    if now - row.began <= fresh:
        return row, row.reason
    if row.verdict == "FAIL":
        return replace(row, missing=True), row.reason
    hours = round((now - row.began) / timedelta(hours=1))
    stale = Message("fleet_stale", {"run": row.run_id or "", "hours": hours})
    return Row(row.machine, "UNJUDGED", missing=True), stale


def _only(table: NightTable, names: set[str]) -> NightTable:
    kept = [place for place, row in enumerate(table.rows) if row.machine in names]
    return NightTable(tuple(table.rows[place] for place in kept), table.series, table.values[kept])


def with_runs(nights: Mapping[str, NightTable]) -> dict[str, NightTable]:
    """The nights in which a machine was tested: the others only name missing machines, and those
    whose FAIL stands from an earlier night.
    """
    return {
        date: table
        for date, table in nights.items()
        if any(row.began is not None and night_of(row.began) == date for row in table.rows)
    }


def with_earlier(
    report: FleetReport, nights: Mapping[str, NightTable], compared: Comparison
) -> FleetReport:
    """The report with the night before the last of these, and with what was found of all.

    A night that tested less than half of the machines is passed over: all others would look new.
    """
    tested = _tested(report.due)
    earlier = sorted(nights, reverse=True)[1:]
    before = next(
        (one for one in earlier if 2 * len(tested & _tested(nights[one].rows)) >= len(tested)), None
    )
    return replace(
        report, before=None if before is None else (before, nights[before]), compared=compared
    )


def _tested(rows: Iterable[Row]) -> set[str]:
    return {row.machine for row in rows if row.began is not None}


# --- node by check ---


class Matrix(NamedTuple):
    """Machines by checks: those machines and checks where something is no pass.

    `outcomes` has the count of each outcome of each check, over all machines.
    """

    checks: tuple[str, ...]
    rows: tuple[Row, ...]
    outcomes: Mapping[str, Counter[str]]


def matrix(report: FleetReport) -> Matrix:
    """The checks that did not pass everywhere, the most frequent first, and their machines."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for row in report.due:
        for check, outcome in row.not_passed:
            outcomes[check][outcome] += 1
    ordered = sorted(outcomes, key=lambda one: (-outcomes[one].total(), one))
    rows = tuple(row for row in report.due if row.not_passed)
    return Matrix(tuple(ordered), rows, outcomes)


# --- distributions ---


class End(NamedTuple):
    """A machine's component at one end of a distribution, and its value."""

    machine: str
    component: Component
    value: float


class Outlier(NamedTuple):
    """A flagged machine in one measurement: its component that is furthest off, and by how much.

    `drop` is a share of what is usual.
    """

    machine: str
    component: Component
    value: float
    drop: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """The values of one measurement on all components of the machines of one model.

    `low` and `high` are the smallest and the largest value; `bins` count the values between them,
    and `flagged` are the bins that hold outliers.
    """

    measurement: str
    unit: str
    model: str
    machines: int
    values: int
    low: End
    high: End
    median: float
    bins: tuple[int, ...]
    flagged: frozenset[int]
    outliers: tuple[Outlier, ...]


def distributions(report: FleetReport) -> tuple[list[Distribution], list[str]]:
    """The distributions, those with outliers first, and the measurements that are the same
    everywhere.
    """
    table = report.values
    models = grouped(
        (dict(row.groups).get("gpu_model", ""), place) for place, row in enumerate(table.rows)
    )
    columns = grouped(
        ((series.measurement, series.unit), place) for place, series in enumerate(table.series)
    )
    marked = flagged(report)
    found, steady = [], []
    for (measurement, unit), places in columns.items():
        varies = False
        for model, rows in sorted(models.items()):
            values = table.values[np.ix_(rows, places)]
            there = ~np.isnan(values)
            if not there.any() or np.nanmin(values) == np.nanmax(values):
                continue
            varies = True
            names = [table.rows[place].machine for place in rows]
            parts = [table.series[place].component for place in places]
            outliers = [
                one for name in names if (one := marked.get((name, measurement))) is not None
            ]
            found.append(_distribution(measurement, unit, model, values, (names, parts), outliers))
        if not varies:
            steady.append(measurement)
    found.sort(key=lambda one: (not one.outliers, one.measurement, one.model))
    return found, sorted(set(steady))


def _distribution(
    measurement: str,
    unit: str,
    model: str,
    values: NDArray[np.float64],
    named: tuple[Sequence[str], Sequence[Component]],
    outliers: Sequence[Outlier],
) -> Distribution:
    there = values[~np.isnan(values)]
    counts, edges = np.histogram(there, BINS)
    names, parts = named

    def end(place: np.intp) -> End:
        row, column = divmod(int(place), values.shape[1])
        return End(names[row], parts[column], float(values[row, column]))

    marks = np.clip(
        np.searchsorted(edges, [one.value for one in outliers], "right") - 1, 0, BINS - 1
    )
    return Distribution(
        measurement,
        unit,
        model,
        int(np.count_nonzero((~np.isnan(values)).any(axis=1))),
        len(there),
        end(np.nanargmin(values)),
        end(np.nanargmax(values)),
        float(np.median(there)),
        tuple(counts.tolist()),
        frozenset(marks.tolist()),
        tuple(sorted(outliers, key=lambda one: -one.drop)),
    )


def flagged(report: FleetReport) -> dict[tuple[str, str], Outlier]:
    """The outliers by machine and measurement: of each the component that is furthest off."""
    found: dict[tuple[str, str], Outlier] = {}
    for flag in report.compared.flags if report.compared else ():
        key = flag.machine, flag.series.measurement
        if key not in found or flag.drop > found[key].drop:
            found[key] = Outlier(flag.machine, flag.series.component, flag.value, flag.drop)
    return found


# --- rates ---


class Rate(NamedTuple):
    """A key rate: the lowest value of each machine that has it."""

    measurement: str
    unit: str
    lowest: Mapping[str, float]


def key_rates(table: NightTable) -> Iterator[Rate]:
    """Those of KEY_RATES that a machine of the table has."""
    for name in KEY_RATES:
        places = [place for place, one in enumerate(table.series) if one.measurement == name]
        if not places:
            continue
        values = np.where(np.isnan(table.values[:, places]), np.inf, table.values[:, places])
        lowest = values.min(axis=1)
        measured = {
            row.machine: float(value)
            for row, value in zip(table.rows, lowest, strict=True)
            if np.isfinite(value)
        }
        yield Rate(name, table.series[places[0]].unit, measured)


# --- the oldest verdicts ---


def oldest(report: FleetReport) -> list[tuple[Row, timedelta | None]]:
    """The due machines with the age of their newest run: none at all first, then the oldest."""
    ages = [
        (row, report.now - report.last[row.machine] if row.machine in report.last else None)
        for row in report.due
    ]
    return sorted(
        ages, key=lambda one: (one[1] is not None, -(one[1] or timedelta()), one[0].machine)
    )


# --- what changed since the night before ---


class Change(NamedTuple):
    """Machines whose verdict, or a fact, was something else on the night before."""

    what: str
    was: str | None
    now: str | None
    machines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is not as it was on the night before.

    `verdicts` are turns from one word to another, the worst first. `facts` are those of drivers,
    firmware, software and GPUs. `new` were not in the night before, `gone` are not in the report.
    """

    verdicts: tuple[Change, ...]
    facts: tuple[Change, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]


GPUS = "GPUs"  # the fact of which cards are in a machine


def changes(report: FleetReport) -> Changes | None:
    """What changed since the night before; None where that is not known."""
    if report.before is None:
        return None
    before = {row.machine: row for row in report.before[1].rows}
    turns: dict[tuple[VerdictWord, VerdictWord], list[str]] = defaultdict(list)
    facts: dict[tuple[str, str | None, str | None], list[str]] = defaultdict(list)
    for row in report.due:
        was = before.get(row.machine)
        if was is None:
            continue
        if was.verdict != row.verdict:
            turns[was.verdict, row.verdict].append(row.machine)
        if was.began is None or row.began is None:
            continue  # nothing to compare
        for key, old, new in _facts(was, row):
            facts[key, old, new].append(row.machine)
    words = sorted(turns, key=lambda one: (-WORDS.index(one[1]), -WORDS.index(one[0])))
    here = {row.machine for row in (*report.due, *report.others)}
    return Changes(
        tuple(Change("", was, word, tuple(sorted(turns[was, word]))) for was, word in words),
        tuple(
            Change(key, old, new, tuple(sorted(names)))
            for (key, old, new), names in sorted(
                facts.items(), key=lambda one: (one[0][0], -len(one[1]), one[1])
            )
        ),
        tuple(sorted(row.machine for row in report.due if row.machine not in before)),
        tuple(sorted(before.keys() - here)),
    )


def _facts(was: Row, now: Row) -> Iterator[tuple[str, str | None, str | None]]:
    old, new = dict(was.groups), dict(now.groups)
    for key in _FACTS:
        if key == "board_serial" and not (key in old and key in new):
            continue  # only root can read it
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)
    if was.parts and now.parts and was.parts != now.parts:
        gone, come = set(was.parts) - set(now.parts), set(now.parts) - set(was.parts)
        yield GPUS, ", ".join(sorted(gone)) or None, ", ".join(sorted(come)) or None
