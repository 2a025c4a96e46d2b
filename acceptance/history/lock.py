"""The file lock of a machine's baseline."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from acceptance.core import regular_file
from acceptance.history import errors
from acceptance.history.errors import HistoryError

WAIT_S = 20.0  # any other holder takes about a second


@contextlib.contextmanager
def baseline_lock(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a machine's baseline; makes the folder if needed.

    The kernel releases the lock when its holder dies.

    Raises HistoryError if another process holds it for more than `wait_s` seconds, or if the folder
    cannot be written.
    """
    path = folder / ".lock"
    with errors.history_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        regular_file.require(path)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        until = time.monotonic() + wait_s
        while True:
            try:
                with errors.history_errors(path):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except HistoryError as error:
                if not isinstance(error.__cause__, BlockingIOError):
                    raise
                if time.monotonic() > until:
                    raise HistoryError("history_locked", path=str(path)) from None
            time.sleep(0.02)
        yield
    finally:
        os.close(file)
