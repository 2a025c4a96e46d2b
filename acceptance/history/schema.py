"""The tables of a history, and how a file of an earlier version becomes one of this version."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from acceptance.history.trouble import Damaged, HistoryError

APPLICATION = 0x52675072  # "RgPr", in the header of the file: whose it is

# Each step takes a file from the version before to the next; what was published is never changed, another step is added.
# `seq` is the order in which nights were recorded, and never goes back: clocks do. Names stand once, in `line`; a value is one row of
# some 20 bytes, next to the other values of its line, because that is how they are read.
STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE era (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, facts TEXT NOT NULL)",
        "CREATE TABLE parts (id INTEGER PRIMARY KEY, identities TEXT NOT NULL UNIQUE)",
        """CREATE TABLE night (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, folder TEXT, utc TEXT NOT NULL, day REAL NOT NULL,
            seconds REAL, profile TEXT NOT NULL, scope TEXT NOT NULL, verdict TEXT NOT NULL, virtual INTEGER NOT NULL,
            postponed INTEGER NOT NULL, apart TEXT, era INTEGER NOT NULL REFERENCES era, parts INTEGER NOT NULL REFERENCES parts,
            pruned INTEGER NOT NULL DEFAULT 0)""",
        "CREATE INDEX night_by_era ON night (era, seq)",
        """CREATE TABLE line (
            id INTEGER PRIMARY KEY, check_id TEXT NOT NULL, measurement TEXT NOT NULL, component TEXT NOT NULL, unit TEXT NOT NULL,
            serial TEXT NOT NULL, UNIQUE (measurement, component, check_id, unit, serial))""",
        """CREATE TABLE figure (
            line INTEGER NOT NULL REFERENCES line, night INTEGER NOT NULL REFERENCES night, value REAL, again REAL,
            flags INTEGER NOT NULL, PRIMARY KEY (line, night)) WITHOUT ROWID""",
    ),
    # What the night told of changes since the baseline, as JSON: the next one is to know it.
    ("ALTER TABLE night ADD COLUMN told TEXT",),
)


def version(connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]) -> int:
    """The version of a file; 0 of one in which there is nothing yet.

    Raises Damaged for another program's database, HistoryError for one of a later version.
    """
    owner, found, tables = (
        connection.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if not tables and not owner:
        return 0
    if owner != APPLICATION or not isinstance(found, int) or found < 1:
        raise Damaged(f"{path}: is another program's database: move it away, then start again")
    if found > len(steps):
        newer = f"is of version {found}, newer than this rigproof knows ({len(steps)})"
        raise HistoryError(f"{path}: {newer}: install that newer rigproof; this one leaves the file as it is")
    return found


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Sequence[str]]) -> None:
    """Bring a file to the newest version: all of it or nothing, whoever dies in it. Raises what `version` does."""
    if version(connection, path, steps) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version(connection, path, steps) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
