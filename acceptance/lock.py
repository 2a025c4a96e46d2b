"""The machine's lock: one run at a time, whoever starts it and wherever its output goes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

NAME = "run/lock/rigproof.lock"


class Busy(Exception):
    """Another run holds the lock; the message is one sentence."""


class LockError(Exception):
    """The lock cannot be taken at all; the message is one sentence."""


class MachineLock:
    """An advisory lock that the kernel releases when its holder dies, by SIGKILL included.

    The file keeps the holder's run directory, so that the next start can find a run that was never finished.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._path = root / NAME
        self._file = -1

    def __enter__(self) -> Self:
        self._file = self._open()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = self._read()
            os.close(self._file)
            if not isinstance(error, BlockingIOError):
                raise LockError(f"{self._path}: cannot be locked ({error.strerror}): put it on a local disk") from error
            told = f" (process {holder['pid']}, writing to {holder['run_dir']})" if holder else ""
            raise Busy(
                f"another rigproof run has this machine{told}: two loads at once would spoil both; wait for it or stop it"
            ) from error
        return self

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(FileNotFoundError):
            # Without O_CREAT first: in a sticky folder the kernel may refuse it even to root (fs.protected_regular).
            return self._must(flags)
        previous = os.umask(0)  # the next run may be another user's
        try:
            return self._must(flags | os.O_CREAT)
        finally:
            os.umask(previous)

    def _must(self, flags: int) -> int:
        try:
            return os.open(self._path, flags, 0o666)
        except FileNotFoundError as error:
            if not flags & os.O_CREAT:
                raise
            raise LockError(
                f"{self._path}: the folder for lock files is missing: create {self._path.parent} (mode 1777)"
            ) from error
        except OSError as error:
            raise LockError(
                f"{self._path}: cannot be opened ({error.strerror}): remove it or mend its permissions"
            ) from error

    def _read(self) -> dict[str, str] | None:
        """What the file says, if it is what we write: every user may write to it."""
        try:
            found = json.loads(os.pread(self._file, 65536, 0))
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or not isinstance(found.get("pid"), int):
            return None
        run_dir = found.get("run_dir")
        if not isinstance(run_dir, str) or not run_dir.isprintable():
            return None
        return {"pid": str(found["pid"]), "run_dir": run_dir}

    def last_run(self) -> Path | None:
        """The run directory that the holder before this one wrote to, or None."""
        found = self._read()
        return Path(found["run_dir"]) if found else None

    def claim(self, run_dir: Path) -> None:
        """Write down whose run it is. Raises LockError when the disk does not take it."""
        text = json.dumps({"pid": os.getpid(), "run_dir": str(run_dir)}).encode()
        try:
            os.ftruncate(self._file, 0)
            if os.pwrite(self._file, text, 0) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise LockError(f"{self._path}: cannot be written ({error.strerror}): make room there") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
