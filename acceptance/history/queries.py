"""Queries of the history: nights for the reference, series for the trend, skipped nights."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from acceptance.core.machine_facts import KnownChange
from acceptance.core.parts import decode, parse
from acceptance.history import errors
from acceptance.history.era import Era
from acceptance.history.night import PartMeasurement, ReportedChanges, SeriesKey
from acceptance.history.reference_builder import NightValue
from acceptance.history.store import FAILED, OUTSIDE, UNSTEADY, Store, era_of
from acceptance.history.trend import TrendPoint, TrendSeries

_ERA = "era = (SELECT id FROM era WHERE key = ?)"
_NAMED = (
    "(? IN ('*', measurement) OR measurement GLOB ?) AND (? IN ('*', component) OR component "
    "GLOB ?)"
)
_HELD = "apart IS NULL AND NOT postponed"


def night_values(
    store: Store,
    era: str | None,
    *,
    after: int = 0,
    first: int,
    last: int,
    only: Collection[str] | None = None,
) -> dict[PartMeasurement, tuple[NightValue, ...]]:
    """The nights with which tonight's values may be compared, by part, oldest first.

    Only the `first` and the `last` nights of this era are read; without an era, those of all
    nights, for measurements that do not depend on one. `only` names the measurements needed.

    `after` is the number of the accepted run's night: it and all nights recorded before it are left
    out, whatever the clock said. Also left out are nights whose evidence is not whole, nights that
    were partial, cut off, postponed or salvaged, nights on which somebody else used the GPUs, and
    runs in an image of the user's own. A value outside its past, or that broke its limit, is
    included and marked: it is needed to detect two consecutive nights, and the code that computes a
    level leaves it out. Values within their limits count whatever the night's verdict was: another
    part's fault does not concern them.
    """
    of_era = "" if era is None else f"{_ERA} AND "
    query = f"SELECT seq, day FROM night WHERE {of_era}{_HELD} AND seq > ? ORDER BY seq"
    days: dict[int, float] = dict(_rows(store, query, *(() if era is None else (era,)), after))
    order = list(days)
    spans = [(some[0], some[-1]) for some in (order[:first], order[first:][-last:]) if some]
    query = (
        "SELECT night, value, again, flags FROM figure WHERE line = ? AND value IS NOT NULL AND "
        "night BETWEEN ? AND ?"
        " ORDER BY night"
    )
    found: dict[PartMeasurement, dict[int, NightValue]] = {}
    for number, line in _lines(store).items():
        if only is not None and line.measurement not in only:
            continue
        values = {
            night: NightValue(days[night], value, again, *_marks(flags))
            if flags
            else NightValue(days[night], value, again)
            for span in spans
            for night, value, again, flags in _rows(store, query, number, *span)
            if night in days  # nights of another era may lie between
        }
        if values:
            known = found.get(line.part)  # nights of the part under another name, in another slot
            found[line.part] = values if known is None else dict(sorted((known | values).items()))
    return {part: tuple(values.values()) for part, values in found.items()}


def _marks(flags: int) -> tuple[bool, bool, bool]:
    """Outside, unsteady and failed, from a measurement's flags."""
    return flags & OUTSIDE != 0, flags & UNSTEADY != 0, flags & FAILED != 0


def number(store: Store, run_id: str) -> int | None:
    """The number of a run's night; None if it is not recorded.

    Numbers follow the order of recording, whatever the clock said.
    """
    rows = _rows(store, "SELECT seq FROM night WHERE run_id = ?", run_id)
    return int(rows[0][0]) if rows else None


def last_until(store: Store, day: float) -> int:
    """The number of the last night that began by `day`; 0 if none did.

    `day` is in days since 1970-01-01. Nights are in the order of recording. A night whose clock was
    wrong is outvoted by the others: the split is where most clocks agree.
    """
    most = votes = found = 0
    for number, began in _rows(store, "SELECT seq, day FROM night ORDER BY seq"):
        votes += 1 if began <= day else -1
        if votes >= most:
            most, found = votes, number
    return found


def trend_series(
    store: Store,
    measurement: str | None = None,
    component: str | None = None,
    last: int | None = None,
) -> tuple[TrendSeries, ...]:
    """Every measurement's series over the last recorded nights, or all.

    `measurement` and `component` are shell patterns. A measurement whose part was replaced has a
    series for each part.
    """
    query = (
        f"SELECT run_id, day, value, again, flags & {OUTSIDE} <> 0, flags & {UNSTEADY} <> 0, "
        f"{_HELD} AND flags & {FAILED} = 0, era"
        " FROM figure CROSS JOIN night ON seq = night WHERE line = ? AND night >= ? AND value IS "
        "NOT NULL ORDER BY night"
    )
    first, found = _first(store, last), []
    for number, line in _lines(store, measurement, component).items():
        points = tuple(map(TrendPoint._make, _rows(store, query, number, first)))
        if points:
            found.append(TrendSeries(*line, points))
    return tuple(found)


def rows(
    store: Store,
    measurement: str | None = None,
    component: str | None = None,
    last: int | None = None,
) -> Iterator[tuple[object, ...]]:
    """Every measurement with its night, series by series, oldest night first.

    Measurements without a value are included. Columns: run, time (UTC), verdict, profile, why later
    nights are not compared with it (None if they are), era, check, measurement, component, serial,
    unit, value, repeat, outside, unsteady, failed.
    """
    query = (
        "SELECT run_id, utc, verdict, profile, apart, era.key, check_id, measurement, component, "
        "serial, unit, value, again, flags"
        " FROM line CROSS JOIN figure ON line = line.id AND night >= ? CROSS JOIN night ON seq = "
        "night"
        f" CROSS JOIN era ON era.id = night.era WHERE {_NAMED} ORDER BY line.id, night"
    )
    what, where = measurement or "*", component or "*"
    named = (_first(store, last), what, what, where, where)
    with errors.history_errors(store.path):  # a row at a time: there may be millions
        for *cells, serial, unit, value, again, flags in store.connection.execute(query, named):
            marks = (bool(flags & bit) for bit in (OUTSIDE, UNSTEADY, FAILED))
            yield (*cells, serial or None, unit, value, again, *marks)


def eras(store: Store) -> dict[int, Era]:
    """Every era by the number that points have.

    Raises DamagedHistory if its facts cannot be read.
    """
    rows = _rows(store, "SELECT id, facts FROM era")
    return {number: era_of(facts, store.path) for number, facts in rows}


def _first(store: Store, last: int | None) -> int:
    """The number of the first of the `last` newest nights; 0 if all are wanted."""
    query = "SELECT seq FROM night ORDER BY seq DESC LIMIT 1 OFFSET ?"
    rows = _rows(store, query, last - 1) if last is not None else []
    return int(rows[0][0]) if rows else 0


def _lines(
    store: Store, measurement: str | None = None, component: str | None = None
) -> dict[int, SeriesKey]:
    query = (
        "SELECT id, check_id, measurement, component, unit, nullif(serial, '') FROM line "
        "WHERE "
        f"{_NAMED} ORDER BY id"
    )
    what, where = measurement or "*", component or "*"
    return {
        number: SeriesKey(check, measured, parse(name), unit, serial)
        for number, check, measured, name, unit, serial in _rows(
            store, query, what, what, where, where
        )
    }


def skipped_in_a_row(store: Store) -> int:
    """How many runs since the last whole one found the machine in use and were postponed.

    A run on a part of the machine, or one that was cut off, is no night in place of these.
    """
    query = (
        "SELECT count(*) FROM night WHERE postponed AND seq > (SELECT coalesce(max(seq), 0) FROM "
        "night WHERE NOT postponed AND (apart IS NULL OR apart NOT IN ('partial', 'interrupted')))"
    )
    return int(_rows(store, query)[0][0])


def known_changes(store: Store, birth: str) -> tuple[KnownChange, ...]:
    """The changes since the baseline that the last night has reported.

    `birth` is the id of the baseline's run; empty if that night was compared with another baseline.
    Runs that were partial or cut off, or whose evidence is not whole, do not count. A record that
    cannot be read counts as empty.
    """
    query = (
        "SELECT told FROM night WHERE told IS NOT NULL AND NOT postponed AND (apart IS NULL OR "
        "apart IN ('in-use', 'own-image'))"
        " ORDER BY seq DESC LIMIT 1"
    )
    for (text,) in _rows(store, query):
        with contextlib.suppress(msgspec.DecodeError, TypeError, UnicodeError):
            reported = msgspec.json.decode(text, type=ReportedChanges, dec_hook=decode)
            return reported.known if reported.birth == birth else ()
    return ()


def _rows(store: Store, query: str, *values: object) -> list[Any]:
    with errors.history_errors(store.path):
        return store.connection.execute(query, values).fetchall()
