"""Errors of a history or baseline, each a sentence with its cure. None changes a run's verdict."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.regular_file import NotRegular

REBUILD = "`rigproof history --rebuild` makes it anew from the runs that are there"


class HistoryError(Exception):
    """The history cannot be read or written; the message is one sentence with its cure."""


class DamagedHistory(HistoryError):
    """The file is not a sound database of ours.

    It can be set aside, and another one made from the journals.
    """


_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# how Python's message begins for a text that is not UTF-8; that error has no SQLite code
_NO_TEXT = "Could not decode"
_CURES = {
    sqlite3.SQLITE_BUSY: (
        "is in use by another process",
        "wait until that has ended, then start again",
    ),
    sqlite3.SQLITE_LOCKED: (
        "is in use by another process",
        "wait until that has ended, then start again",
    ),
    sqlite3.SQLITE_FULL: (
        "cannot be written (the disk is full)",
        "make room; the next start adds what is missing",
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written",
        "make room on that disk or mend it; nothing measured is lost",
    ),
    sqlite3.SQLITE_READONLY: ("cannot be written", "mend its permissions and those of its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "mend its permissions and those of its folder"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "mend its permissions and those of its folder"),
    sqlite3.SQLITE_AUTH: ("cannot be opened", "mend its permissions and those of its folder"),
    sqlite3.SQLITE_PROTOCOL: (
        "cannot be locked on this file system",
        "give a folder on a local disk with --out",
    ),
    sqlite3.SQLITE_NOLFS: (
        "is larger than this file system takes",
        "give a folder on another disk with --out",
    ),
    sqlite3.SQLITE_TOOBIG: (
        "cannot take a text as long as one of this run",
        "keep the run's folder and report it",
    ),
}


def from_sqlite(error: sqlite3.Error, path: Path) -> HistoryError:
    """The HistoryError for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    # the higher bits of an extended code say which part of SQLite failed
    plain = (
        code & 0xFF if code is not None else None
    )  # the rest of the number tells which part of SQLite met it
    if plain in _DAMAGED or (code is None and str(error).startswith(_NO_TEXT)):
        return DamagedHistory(f"{path}: is damaged ({error}): {REBUILD}")
    what, cure = _CURES.get(plain or 0, ("cannot be used", "keep the file and report it"))
    text = "" if "(" in what else f" ({error})"
    return HistoryError(f"{path}: {what}{text}: {cure}")


@contextlib.contextmanager
def history_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system about this file into HistoryError."""
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except UnicodeDecodeError as error:  # SQLite's own message quotes the damage
        raise DamagedHistory(f"{path}: is damaged ({error}): {REBUILD}") from error
    except OSError as error:
        where = error.filename or path
        cure = "make room, or mend the folder's permissions"
        if isinstance(error, NotRegular):
            cure = "move it away, then start again"
        raise HistoryError(
            f"{where}: cannot be read or written ({error.strerror}): {cure}"
        ) from error


class BaselineRefused(Exception):
    """A request about the baseline that cannot be met.

    The run is not a full PASS of this machine, there is a baseline already, or there is none.
    """


class BaselineUnsound(Exception):
    """The baseline cannot be read, trusted or written.

    A run that should be compared with it is unjudged for this reason.
    """
