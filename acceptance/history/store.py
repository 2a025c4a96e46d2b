"""The history store: one SQLite file.

Each night is added whole or not at all, and only once, whichever process is first.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from acceptance.core import parts
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.history import errors, location
from acceptance.history.era import Era
from acceptance.history.errors import DamagedHistory, ForeignDatabase, HistoryError
from acceptance.history.lock import history_lock
from acceptance.history.night import Night, NightMeasurement
from acceptance.wording.errors import WordedError, said

APPLICATION = 0x52675072  # "RgPr" in the header of the file: marks it as ours

# Each step migrates a file to the next version. A published step never changes; another is added.
# `seq` is the order in which nights were recorded, and never goes back, as clocks do. Names are
# stored once, in `line`; a value is one row of some 20 bytes, next to the other values of its line,
# because that is how they are read.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE era (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, facts TEXT NOT NULL)",
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, identities TEXT NOT NULL UNIQUE)",
        """CREATE TABLE night (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, folder TEXT,
            utc TEXT NOT NULL, day REAL NOT NULL, seconds REAL, profile TEXT NOT NULL,
            scope TEXT NOT NULL, verdict TEXT NOT NULL, virtual INTEGER NOT NULL,
            postponed INTEGER NOT NULL, apart TEXT, era INTEGER NOT NULL REFERENCES era,
            parts INTEGER NOT NULL REFERENCES parts, pruned INTEGER NOT NULL DEFAULT 0)""",
        "CREATE INDEX night_by_era ON night (era, seq)",
        """CREATE TABLE line (
            id INTEGER PRIMARY KEY, check_id TEXT NOT NULL, measurement TEXT NOT NULL,
            component TEXT NOT NULL, unit TEXT NOT NULL, serial TEXT NOT NULL,
            UNIQUE (measurement, component, check_id, unit, serial))""",
        """CREATE TABLE figure (
            line INTEGER NOT NULL REFERENCES line, night INTEGER NOT NULL REFERENCES night,
            value REAL, again REAL, flags INTEGER NOT NULL,
            PRIMARY KEY (line, night)) WITHOUT ROWID""",
    ),
    # The changes since the baseline that the night reported, as JSON, for the next night.
    ("ALTER TABLE night ADD COLUMN told TEXT",),
)


def schema_version(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]
) -> int:
    """The schema version of a file; 0 if it is empty.

    Raises DamagedHistory for another program's database, HistoryError for one of a later version.
    """
    owner, found, tables = (
        connection.execute(query).fetchone()[0]
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if not tables and not owner:
        return 0
    if owner != APPLICATION or not isinstance(found, int) or found < 1:
        raise ForeignDatabase(path)
    if found > len(steps):
        raise HistoryError("history_newer", path=str(path), found=found, known=len(steps))
    return found


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]) -> None:
    """Bring a file to the newest version, in one transaction.

    Raises what `schema_version` raises.
    """
    if schema_version(connection, path, steps) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[schema_version(connection, path, steps) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


# how long to wait for another writer; writing a night takes a hundredth of a second
BUSY_S = 20.0
OUTSIDE, UNSTEADY, FAILED = 1, 2, 4  # bits of a measurement's flags


class NoRowId(WordedError, sqlite3.DatabaseError):
    """What a table has for the id of a row is none."""


class TornNight(WordedError, ValueError):
    """The rows of a night are not what `Store.add` writes."""


@dataclass(frozen=True, slots=True)
class StoredNight:
    """A night in the store, without its measurements.

    `folder` is the run's folder in `out`, None once it was removed. `pruned` says that its
    measurements were removed. `era` is the era's key.
    """

    seq: int
    run_id: str
    folder: str | None
    utc: str
    day: float
    seconds: float | None
    profile: str
    verdict: str
    apart: str | None
    era: str
    virtual: bool
    postponed: bool
    pruned: bool


class Store:
    """An open history.

    Every method raises HistoryError, and DamagedHistory if the file is not a sound database of
    ours.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @classmethod
    def open(
        cls, path: Path, steps: Sequence[Sequence[str]] = STEPS, *, locked: bool = False
    ) -> Self:
        """Open a machine's history to write; it is created or migrated if needed.

        `locked` says that the caller holds the history's lock. Raises HistoryError, also if the
        file system lacks the shared memory that the write-ahead log needs.
        """
        with (
            errors.history_errors(path),
            contextlib.nullcontext() if locked else history_lock(path.parent),
        ):
            location.require_files(path)
            connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                if schema_version(connection, path, steps) == 0:
                    # pruning gives space back to the disk
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    raise HistoryError("no_write_ahead_log", path=str(path), mode=str(mode))
                # A night must be on the disk before its folder is pruned or the next night is
                # compared with it; this costs one fsync a night.
                connection.execute("PRAGMA synchronous = FULL")
                migrate(connection, path, steps)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    @classmethod
    def view(cls, path: Path, steps: Sequence[Sequence[str]] = STEPS) -> Self:
        """Open a history read-only, also in a read-only folder.

        Raises HistoryError, also if there is none.
        """
        if not path.exists():
            raise HistoryError("no_history", path=str(path))
        # A file in a read-only folder can be read without the log's shared memory, provided that
        # the log is empty.
        log = path.with_name(f"{path.name}-wal")
        still = not os.access(path.parent, os.W_OK) and not (log.is_file() and log.stat().st_size)
        with errors.history_errors(path):
            location.require_files(path)
            name = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
            connection = sqlite3.connect(name, uri=True, timeout=BUSY_S, isolation_level=None)
            try:
                found = schema_version(connection, path, steps)
                if found != len(steps):
                    raise HistoryError(
                        "history_older", path=str(path), found=found, known=len(steps)
                    )
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; every added night is on the disk already."""
        with errors.history_errors(self.path):
            self.connection.close()

    def check(self, *, indexes: bool = False) -> None:
        """Check the whole file, and with `indexes` that they agree with the tables.

        Raises DamagedHistory if SQLite finds its structure damaged, or if an era's facts cannot be
        read.
        """
        pragma = "integrity_check" if indexes else "quick_check"
        with errors.history_errors(self.path):
            found = self.connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
        if found != "ok":
            raise DamagedHistory("history_damaged", path=str(self.path), why=str(found))
        self.eras()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all statements in it take effect, or none."""
        with errors.history_errors(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A read transaction: all reads in it see the same state.

        Nothing may be written in it.
        """
        with errors.history_errors(self.path):
            self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.rollback()

    def add(self, night: Night, folder: str | None = None, *, pruned: bool = False) -> bool:
        """Add a night with all its measurements; false if its run is there already.

        `folder` is the run's folder in `out`. `pruned` says that its measurements were removed.
        """
        with self.transaction() as connection:
            era = _id(connection, "era", "key", night.era.key, facts=json.dumps(night.era.facts))
            identities = _id(
                connection,
                "parts",
                "identities",
                json.dumps(
                    {
                        str(part): night.identities[part]
                        for part in sorted(night.identities, key=str)
                    }
                ),
            )
            row = (
                night.run_id,
                folder,
                night.utc,
                night.day,
                night.seconds,
                night.profile,
                night.scope,
                night.verdict,
            )
            reported = (
                msgspec.json.encode(night.told, enc_hook=parts.encode).decode()
                if night.told
                else None
            )
            more = (night.virtual, night.postponed, night.apart, era, identities, reported, pruned)
            done = connection.execute(
                "INSERT INTO night (run_id, folder, utc, day, seconds, profile, scope, verdict, "
                "virtual, postponed, apart, era, parts,"
                " told, pruned) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (run_id) DO NOTHING",
                (*row, *more),
            )
            if done.rowcount != 1:
                return False
            seq = done.lastrowid
            rows = [
                (_line(connection, one), seq, one.value, one.again, _flags(one))
                for one in night.figures
            ]
            connection.executemany("INSERT INTO figure VALUES (?, ?, ?, ?, ?)", rows)
        return True

    def night(self, run_id: str, machine_id: str) -> Night:
        """A recorded night with its measurements; `machine_id` is the machine's own.

        Raises DamagedHistory if its rows are not what `add` writes.
        """
        query = (
            "SELECT utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, facts, "
            "identities, told, seq FROM night JOIN era ON era.id = era JOIN parts ON parts.id = "
            "parts WHERE run_id = ?"
        )
        # CROSS JOIN: a row of each line is looked up; by night alone, all rows would be read.
        figures = (
            "SELECT check_id, measurement, component, unit, serial, value, again, flags FROM line "
            "CROSS JOIN figure ON line = line.id AND night = ? ORDER BY line.id"
        )
        with errors.history_errors(self.path):
            row = self.connection.execute(query, (run_id,)).fetchone()
            rows = self.connection.execute(figures, row[-1:] if row else (0,)).fetchall()
        try:
            return _night((run_id, machine_id), row, rows)
        except (ValueError, TypeError) as error:
            why = Message("recorded_night_unread", {"night": run_id, "why": said(error)})
            raise DamagedHistory("history_damaged", path=str(self.path), why=why) from error

    def link(self, run_id: str, folder: str | None) -> None:
        """Set the folder of a run; None if it is gone."""
        with self.transaction() as connection:
            connection.execute("UPDATE night SET folder = ? WHERE run_id = ?", (folder, run_id))

    def nights(self, last: int | None = None) -> tuple[StoredNight, ...]:
        """The last recorded nights, or all, in the order of recording."""
        query = (
            "SELECT seq, run_id, folder, utc, day, seconds, profile, verdict, apart, era.key, "
            "virtual, postponed, pruned"
            " FROM night JOIN era ON era.id = night.era ORDER BY seq DESC LIMIT ?"
        )
        with errors.history_errors(self.path):
            rows = self.connection.execute(query, (-1 if last is None else last,)).fetchall()
        return tuple(map(_stored_night, reversed(rows)))

    def count(self) -> int:
        """The number of recorded nights."""
        with errors.history_errors(self.path):
            return int(self.connection.execute("SELECT count(*) FROM night").fetchone()[0])

    def eras(self) -> dict[str, Era]:
        """Every era by its key. Raises DamagedHistory if its facts cannot be read."""
        with errors.history_errors(self.path):
            rows = self.connection.execute("SELECT key, facts FROM era ORDER BY id").fetchall()
        return {key: era_of(facts, self.path) for key, facts in rows}


def era_of(facts: Any, path: Path) -> Era:
    """An era from its facts as stored.

    Raises DamagedHistory if they are not a list of names and texts.
    """
    try:
        return Era(msgspec.json.decode(facts, type=tuple[tuple[str, str], ...]))
    except (msgspec.DecodeError, TypeError, UnicodeError) as error:
        why = Message("era_without_facts", {"why": str(error)})
        raise DamagedHistory("history_damaged", path=str(path), why=why) from error


def _id(connection: sqlite3.Connection, table: str, column: str, value: str, **more: str) -> int:
    """The id of the row with this value, which is added if needed."""
    found = connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()
    if found:
        return _number(found[0])
    names = ", ".join((column, *more))
    marks = ", ".join("?" * (1 + len(more)))
    return int(
        connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", (value, *more.values())
        ).lastrowid
        or 0
    )


def _number(id_: object) -> int:
    """The id of a row. Raises NoRowId if it is none: the table is not as it was made."""
    if not isinstance(id_, int):
        raise NoRowId("no_row_id", value=repr(id_))
    return id_


def _stored_night(row: Sequence[Any]) -> StoredNight:
    seq, run_id, folder, utc, day, seconds, profile, verdict, apart, era, *words = row
    virtual, postponed, pruned = map(bool, words)
    return StoredNight(
        seq,
        run_id,
        folder,
        utc,
        day,
        seconds,
        profile,
        verdict,
        apart,
        era,
        virtual,
        postponed,
        pruned,
    )


def _night(
    ids: tuple[str, str], row: Sequence[Any] | None, figures: Sequence[Sequence[Any]]
) -> Night:
    """A night from its rows. Raises ValueError or TypeError if they are not what `add` writes."""
    if row is None:
        raise TornNight("night_without_parts")
    utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, *texts, _ = row
    facts, told = (
        None if text is None else msgspec.json.decode(text) for text in (texts[0], texts[2])
    )
    # `convert` would leave the names as texts
    identities = msgspec.json.decode(texts[1], type=dict[Component, str], dec_hook=parts.decode)
    return msgspec.convert(
        {
            **dict(zip(("run_id", "machine_id"), ids, strict=True)),
            "utc": utc,
            "day": day,
            "seconds": seconds,
            "profile": profile,
            "scope": scope,
            "verdict": verdict,
            "virtual": _bits(virtual, 1)[0],
            "postponed": _bits(postponed, 1)[0],
            "apart": apart,
            "era": {"facts": facts},
            "identities": identities,
            "figures": [
                {
                    "line": (*names, serial or None),
                    "value": value,
                    "again": again,
                    **dict(zip(("outside", "unsteady", "failed"), _bits(flags, 3), strict=True)),
                }
                for *names, serial, value, again, flags in figures
            ],
            "told": told,
        },
        Night,
        dec_hook=parts.decode,
    )


def _bits(number: object, count: int) -> tuple[bool, ...]:
    """The lowest bits of a number, which has no others, the lowest first. Raises ValueError."""
    if not isinstance(number, int) or not 0 <= number < 1 << count:
        raise TornNight("no_mark", value=repr(number))
    return tuple(bool(number >> bit & 1) for bit in range(count))


def _flags(measurement: NightMeasurement) -> int:
    return (
        OUTSIDE * measurement.outside
        | UNSTEADY * measurement.unsteady
        | FAILED * measurement.failed
    )


def _line(connection: sqlite3.Connection, figure: NightMeasurement) -> int:
    one = figure.line
    names = (one.check, one.measurement, str(one.component), one.unit, one.serial or "")
    found = connection.execute(
        (
            "SELECT id FROM line WHERE check_id = ? AND measurement = ? AND component = ? AND "
            "unit = ? AND serial = ?"
        ),
        names,
    ).fetchone()
    if found:
        return _number(found[0])
    made = (
        "INSERT INTO line (check_id, measurement, component, unit, serial) VALUES (?, ?, ?, ?, ?)"
    )
    return int(connection.execute(made, names).lastrowid or 0)
