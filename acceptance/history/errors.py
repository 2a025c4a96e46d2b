"""Errors of a history or baseline, each with its cure. None changes a run's verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from acceptance.core.message import english
from acceptance.core.regular_file import NotRegular
from acceptance.journal import run_folder
from acceptance.wording.errors import WordedError


class HistoryError(WordedError):
    """The history or the baseline cannot be read, trusted or written; its cure is told with it.

    A run that should be compared with such a baseline is unjudged for this reason.
    """


@contextlib.contextmanager
def history_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system about this file into HistoryError."""
    try:
        yield
    except OSError as error:
        code = (
            english(
                "no_history_file",
                "{path}: cannot be read or written ({why}): move it away, then start again",
            )
            if isinstance(error, NotRegular)
            else english(
                "history_out_of_reach",
                "{path}: cannot be read or written ({why}): make room, or fix the folder's "
                "permissions",
            )
        )
        where = str(error.filename or path)
        raise HistoryError(code, path=where, why=run_folder.reason(error, Path(where))) from error
