"""Errors of a history or baseline, each with its cure. None changes a run's verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.regular_file import NotRegular
from acceptance.journal import ownership
from acceptance.wording.errors import WordedError


class HistoryError(WordedError):
    """The history cannot be read or written; its cure is told with it."""


@contextlib.contextmanager
def history_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system about this file into HistoryError."""
    try:
        yield
    except OSError as error:
        code = "no_history_file" if isinstance(error, NotRegular) else "history_out_of_reach"
        where = str(error.filename or path)
        raise HistoryError(code, path=where, why=ownership.reason(error, Path(where))) from error
