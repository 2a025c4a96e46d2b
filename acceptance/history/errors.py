"""Errors of a history or baseline, each with its cure. None changes a run's verdict."""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.message import Message, Value
from acceptance.core.regular_file import NotRegular
from acceptance.journal import ownership
from acceptance.wording.errors import WordedError, said


class HistoryError(WordedError):
    """The history cannot be read or written; its cure is told with it."""


class DamagedHistory(HistoryError):
    """The file is not a sound database of ours.

    It can be set aside, and another one made from the journals. `what` is wrong with it, without
    the cure.
    """

    def __init__(self, code: str, /, **values: Value | None) -> None:
        super().__init__(code, **values)
        self.what = self.message
        self.message = Message("to_be_made_anew", {"what": self.what})


class ForeignDatabase(DamagedHistory):
    """The file is another program's database, which the user is to move away."""

    def __init__(self, path: Path) -> None:
        super().__init__("foreign_database", path=str(path))
        self.message = self.what


_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# how Python's message begins for a text that is not UTF-8; that error has no SQLite code
_NO_TEXT = "Could not decode"
_BUSY = Message("used_by_another"), Message("wait_for_another")
_MEND = Message("mend_with_folder")
_CLOSED = Message("cannot_be_opened"), _MEND
# what is wrong, and the cure
_CURES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: (Message("disk_full"), Message("room_for_history")),
    sqlite3.SQLITE_IOERR: (Message("cannot_be_used_there"), Message("mend_disk")),
    sqlite3.SQLITE_READONLY: (Message("cannot_be_written"), _MEND),
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_PERM: _CLOSED,
    sqlite3.SQLITE_AUTH: _CLOSED,
    sqlite3.SQLITE_PROTOCOL: (Message("cannot_be_locked_there"), Message("give_local_disk")),
    sqlite3.SQLITE_NOLFS: (Message("too_large_for_disk"), Message("give_other_disk")),
    sqlite3.SQLITE_TOOBIG: (Message("text_too_long"), Message("report_run")),
}
_UNKNOWN = Message("cannot_be_used"), Message("report_history")


def from_sqlite(error: sqlite3.Error, path: Path) -> HistoryError:
    """The HistoryError for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    # the higher bits of an extended code say which part of SQLite failed
    plain = code & 0xFF if code is not None else None
    if plain in _DAMAGED or (code is None and str(error).startswith(_NO_TEXT)):
        return DamagedHistory("history_damaged", path=str(path), why=str(error))
    what, cure = _CURES.get(plain or 0, _UNKNOWN)
    # SQLite says no more of a full disk
    why = None if plain == sqlite3.SQLITE_FULL else said(error)
    theirs = ownership.left_by_root(path)
    if theirs is not None and cure == _MEND:
        cure = Message("give_back", {"path": shlex.quote(str(theirs))})
    return HistoryError("history_failed", path=str(path), what=what, why=why, cure=cure)


@contextlib.contextmanager
def history_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the system about this file into HistoryError."""
    try:
        yield
    except sqlite3.Error as error:
        raise from_sqlite(error, path) from error
    except UnicodeDecodeError as error:  # SQLite's own message quotes the damage
        raise DamagedHistory("history_damaged", path=str(path), why=str(error)) from error
    except OSError as error:
        code = "no_history_file" if isinstance(error, NotRegular) else "history_out_of_reach"
        where = str(error.filename or path)
        raise HistoryError(code, path=where, why=ownership.reason(error, Path(where))) from error


class BaselineRefused(WordedError):
    """A request about the baseline that cannot be met.

    The run is not a full PASS of this machine, there is a baseline already, or there is none.
    """


class BaselineUnsound(WordedError):
    """The baseline cannot be read, trusted or written.

    A run that should be compared with it is unjudged for this reason.
    """
