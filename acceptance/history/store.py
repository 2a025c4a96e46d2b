"""The history store: one SQLite file.

Each night is added whole or not at all, once, by whoever comes first.
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

from acceptance.history import errors, location
from acceptance.history.era import Era
from acceptance.history.errors import DamagedHistory, HistoryError
from acceptance.history.lock import history_lock
from acceptance.history.night import Night, NightMeasurement

APPLICATION = 0x52675072  # "RgPr", in the header of the file: whose it is

# Each step takes a file from the version before to the next; what was published is never changed,
# another step is added. `seq` is the order in which nights were recorded, and never goes back:
# clocks do. Names stand once, in `line`; a value is one row of some 20 bytes, next to the other
# values of its line, because that is how they are read.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE era (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, facts TEXT NOT NULL)",
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, identities TEXT NOT NULL UNIQUE)",
        """CREATE TABLE night (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, folder TEXT, utc TEXT NOT NULL, day REAL NOT NULL,
            seconds REAL, profile TEXT NOT NULL, scope TEXT NOT NULL, verdict TEXT NOT NULL, virtual INTEGER NOT NULL,
            postponed INTEGER NOT NULL, apart TEXT, era INTEGER NOT NULL REFERENCES era, parts INTEGER NOT NULL REFERENCES parts,
            pruned INTEGER NOT NULL DEFAULT 0)""",  # noqa: E501
        "CREATE INDEX night_by_era ON night (era, seq)",
        """CREATE TABLE line (
            id INTEGER PRIMARY KEY, check_id TEXT NOT NULL, measurement TEXT NOT NULL, component TEXT NOT NULL, unit TEXT NOT NULL,
            serial TEXT NOT NULL, UNIQUE (measurement, component, check_id, unit, serial))""",  # noqa: E501
        """CREATE TABLE figure (
            line INTEGER NOT NULL REFERENCES line, night INTEGER NOT NULL REFERENCES night, value REAL, again REAL,
            flags INTEGER NOT NULL, PRIMARY KEY (line, night)) WITHOUT ROWID""",  # noqa: E501
    ),
    # What the night told of changes since the baseline, as JSON: the next one is to know it.
    ("ALTER TABLE night ADD COLUMN told TEXT",),
)


def schema_version(
    connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]
) -> int:
    """The version of a file; 0 of one in which there is nothing yet.

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
        raise DamagedHistory(
            f"{path}: is another program's database: move it away, then start again"
        )
    if found > len(steps):
        newer = f"is of version {found}, newer than this rigproof knows ({len(steps)})"
        raise HistoryError(
            f"{path}: {newer}: install that newer rigproof; this one leaves the file as it is"
        )
    return found


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]) -> None:
    """Bring a file to the newest version: all of it or nothing, whoever dies in it.

    Raises what `version` does.
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


BUSY_S = (
    20.0  # how long another writer is waited for; a night is written in a hundredth of a second
)
OUTSIDE, UNSTEADY, FAILED = 1, 2, 4  # bits of a figure's flags


@dataclass(frozen=True, slots=True)
class StoredNight:
    """What the store knows of a night besides its figures.

    `folder` is the run's folder in `out`, None once that was removed.

    `pruned` says that its figures were removed. `era` is the era's key.
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

    Every method raises HistoryError, and DamagedHistory where the file is no sound database of
    ours.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @classmethod
    def open(
        cls, path: Path, steps: Sequence[Sequence[str]] = STEPS, *, locked: bool = False
    ) -> Self:
        """Open a machine's history to write; it is made where there is none, and brought to this
        version.

        `locked` says that the caller holds the `history_lock` of its folder. Raises HistoryError,
        also where the file system does not let two processes share memory, which the write-ahead
        log needs.
        """
        with (
            errors.history_errors(path),
            contextlib.nullcontext() if locked else history_lock(path.parent),
        ):
            location.require_files(path)
            connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                if schema_version(connection, path, steps) == 0:
                    connection.execute(
                        "PRAGMA auto_vacuum = INCREMENTAL"
                    )  # what is pruned is given back to the disk
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    text = (
                        f"this file system takes no write-ahead log (SQLite stays in mode {mode})"
                    )
                    raise HistoryError(f"{path}: {text}: give a folder on a local disk with --out")
                # A night is on the disk before its folder may be pruned, or the next one is held
                # against it; it is one fsync a night.
                connection.execute("PRAGMA synchronous = FULL")
                migrate(connection, path, steps)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    @classmethod
    def view(cls, path: Path, steps: Sequence[Sequence[str]] = STEPS) -> Self:
        """Open a history to read alone, in a folder that may be read-only.

        Raises HistoryError, also where there is none.
        """
        if not path.exists():
            raise HistoryError(
                f"{path}: there is no history yet: `rigproof history --rebuild` makes one "
                "from the runs"
            )
        # What nobody can write may be read without the shared memory of the log, if nothing is left
        # in that.
        log = path.with_name(f"{path.name}-wal")
        still = not os.access(path.parent, os.W_OK) and not (log.is_file() and log.stat().st_size)
        with errors.history_errors(path):
            location.require_files(path)
            name = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
            connection = sqlite3.connect(name, uri=True, timeout=BUSY_S, isolation_level=None)
            try:
                found = schema_version(connection, path, steps)
                if found != len(steps):
                    older = f"is of version {found}, older than this rigproof reads ({len(steps)})"
                    raise HistoryError(
                        f"{path}: {older}: run this once as a user who may write there"
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
        """Close the file; what was added is on the disk since it was added."""
        with errors.history_errors(self.path):
            self.connection.close()

    def check(self) -> None:
        """Look at the whole file.

        Raises DamagedHistory where SQLite finds anything wrong in its structure, and for eras
        without facts.
        """
        with errors.history_errors(self.path):
            found = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise errors.DamagedHistory(f"{self.path}: is damaged ({found}): {errors.REBUILD}")
        self.eras()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is done within, or nothing of it."""
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
        """All that is read within is of one moment, whoever adds a night meanwhile.

        Nothing may be written within.
        """
        with errors.history_errors(self.path):
            self.connection.execute("BEGIN")
        try:
            yield
        finally:
            if self.connection.in_transaction:
                self.connection.rollback()

    def add(self, night: Night, folder: str | None = None) -> bool:
        """Add a night with all its figures, unless its run is there already; true if it was added.

        `folder` is the run's folder in `out`.
        """
        with self.transaction() as connection:
            era = _id(connection, "era", "key", night.era.key, facts=json.dumps(night.era.facts))
            parts = _id(
                connection,
                "parts",
                "identities",
                json.dumps(dict(sorted(night.identities.items()))),
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
            reported = msgspec.json.encode(night.told).decode() if night.told else None
            more = (night.virtual, night.postponed, night.apart, era, parts, reported)
            done = connection.execute(
                "INSERT INTO night (run_id, folder, utc, day, seconds, profile, scope, verdict, "
                "virtual, postponed, apart, era, parts,"
                " told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO "
                "NOTHING",
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

    def link(self, run_id: str, folder: str | None) -> None:
        """Say where a run's folder is now, or that it is gone."""
        with self.transaction() as connection:
            connection.execute("UPDATE night SET folder = ? WHERE run_id = ?", (folder, run_id))

    def nights(self, last: int | None = None) -> tuple[StoredNight, ...]:
        """The last nights that were recorded, or all, in the order in which they were."""
        query = (
            "SELECT seq, run_id, folder, utc, day, seconds, profile, verdict, apart, era.key, "
            "virtual, postponed, pruned"
            " FROM night JOIN era ON era.id = night.era ORDER BY seq DESC LIMIT ?"
        )
        with errors.history_errors(self.path):
            rows = self.connection.execute(query, (-1 if last is None else last,)).fetchall()
        return tuple(map(_stored_night, reversed(rows)))

    def count(self) -> int:
        """How many nights are recorded."""
        with errors.history_errors(self.path):
            return int(self.connection.execute("SELECT count(*) FROM night").fetchone()[0])

    def eras(self) -> dict[str, Era]:
        """Every era by its key. Raises DamagedHistory for what are no facts."""
        with errors.history_errors(self.path):
            rows = self.connection.execute("SELECT key, facts FROM era ORDER BY id").fetchall()
        return {key: era_of(facts, self.path) for key, facts in rows}


def era_of(facts: Any, path: Path) -> Era:
    """An era from its facts as they stand in a file.

    Raises DamagedHistory for anything that is no list of names and texts.
    """
    try:
        return Era(msgspec.json.decode(facts, type=tuple[tuple[str, str], ...]))
    except (msgspec.DecodeError, TypeError, UnicodeError) as error:
        raise errors.DamagedHistory(
            f"{path}: is damaged (an era has no facts: {error}): {errors.REBUILD}"
        ) from error


def _id(connection: sqlite3.Connection, table: str, column: str, value: str, **more: str) -> int:
    """The number of the row with this value; it is added where there is none."""
    found = connection.execute(f"SELECT id FROM {table} WHERE {column} = ?", (value,)).fetchone()
    if found:
        return int(found[0])
    names = ", ".join((column, *more))
    marks = ", ".join("?" * (1 + len(more)))
    return int(
        connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", (value, *more.values())
        ).lastrowid
        or 0
    )


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


def _flags(measurement: NightMeasurement) -> int:
    return (
        OUTSIDE * measurement.outside
        | UNSTEADY * measurement.unsteady
        | FAILED * measurement.failed
    )


def _line(connection: sqlite3.Connection, figure: NightMeasurement) -> int:
    one = figure.line
    names = (one.check, one.measurement, one.component, one.unit, one.serial or "")
    found = connection.execute(
        (
            "SELECT id FROM line WHERE check_id = ? AND measurement = ? AND component = ? AND "
            "unit = ? AND serial = ?"
        ),
        names,
    ).fetchone()
    if found:
        return int(found[0])
    made = (
        "INSERT INTO line (check_id, measurement, component, unit, serial) VALUES (?, ?, ?, ?, ?)"
    )
    return int(connection.execute(made, names).lastrowid or 0)
