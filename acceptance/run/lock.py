"""The machine's lock: one run at a time, whoever starts it and wherever its output goes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from acceptance.core import regular_file
from acceptance.core.message import Message, UserError, english, known
from acceptance.wording.errors import WordedUserError

NAME = "run/lock/rigproof.lock"
# A holder needs microseconds between taking the lock and writing its name; one without processor
# time needs longer.
_SETTLED_S = 0.2


class MachineBusy(WordedUserError):
    """Another run holds the lock; `holder` says which.

    `held_s` is the number of seconds since the holder last wrote to the lock: when it took the
    lock, or when its run got a folder. It is negative where the clock was set back meanwhile.
    """

    def __init__(self, holder: Message | None, held_s: float) -> None:
        super().__init__(
            english(
                "machine_busy",
                "another rigproof run has this machine[ ({holder})]: two loads at once would "
                "spoil both; wait for it or stop it",
            ),
            holder=holder,
        )
        self.held_s = held_s


class _Written(msgspec.Struct, frozen=True):
    """The content of the lock file.

    The process that holds or last held the lock, its run directory as soon as it has a run, and the
    run directory of the holder before it.
    """

    pid: int
    run_dir: str | None
    before: str | None


class MachineLock:
    """An advisory lock that the kernel releases when its holder dies, even by SIGKILL.

    Where a holder has made the file and gets no run, it removes it again. The file stores the
    holder's run directory, so that the next start can find an unfinished run.
    The holder writes it when it takes the lock and when it gets a run, so the file's time tells
    others how long the lock has been held.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._path = root / NAME
        self._file = -1
        self._made = False  # the file was not there, and no run has claimed it yet
        self._before: str | None = None

    def __enter__(self) -> Self:
        self._file = self._open()
        while not self._take():  # its last holder has removed it meanwhile
            os.close(self._file)
            self._file = self._open()
        found = self._read()
        self._before = (found.run_dir or found.before) if found else None
        try:
            self._write(None)
        except UserError:
            self._release()
            raise
        return self

    def _take(self) -> bool:
        """Lock the open file; returns whether it is still the one that others find."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            try:
                if isinstance(error, BlockingIOError):
                    raise self._busy() from error
            finally:
                os.close(self._file)
            raise UserError(
                f"{self._path}: cannot be locked ({error.strerror}): put it on a local disk"
            ) from error
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def _busy(self) -> MachineBusy:
        """The error that names the holder, and for how long it has held the lock."""
        time.sleep(_SETTLED_S)
        holder = self._read()
        held_s = time.time() - os.fstat(self._file).st_mtime
        if holder is None:
            return MachineBusy(None, held_s)
        values = known(pid=holder.pid, run_dir=holder.run_dir)
        return MachineBusy(
            Message(english("lock_holder", "process {pid}[, writing to {run_dir}]"), values), held_s
        )

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        self._made = False
        with contextlib.suppress(FileNotFoundError):
            # Without O_CREAT first: in a sticky folder the kernel may refuse it even to root
            # (fs.protected_regular).
            return self._must(flags)
        previous = os.umask(0)  # the next run may be another user's
        try:
            self._made = True
            return self._must(flags | os.O_CREAT)
        finally:
            os.umask(previous)

    def _must(self, flags: int) -> int:
        try:
            regular_file.require(self._path)
            return os.open(self._path, flags, 0o666)
        except FileNotFoundError as error:
            if not flags & os.O_CREAT:
                raise
            raise UserError(
                f"{self._path}: the folder for lock files is missing: create "
                f"{self._path.parent} (mode 1777)"
            ) from error
        except OSError as error:
            raise UserError(
                f"{self._path}: cannot be opened ({error.strerror}): remove it or fix its "
                "permissions"
            ) from error

    def _read(self) -> _Written | None:
        """The file's content, if it is well formed: every user may write to the file."""
        try:
            found = msgspec.json.decode(os.pread(self._file, 65536, 0), type=_Written)
        except (msgspec.MsgspecError, RecursionError):
            return None
        places = (found.run_dir, found.before)
        return found if all(one is None or one.isprintable() for one in places) else None

    def last_run(self) -> Path | None:
        """The run directory of the last holder that had one; None where there is none."""
        return Path(self._before) if self._before is not None else None

    def claim(self, run_dir: Path) -> None:
        """Record the run directory. Raises UserError when it cannot be written."""
        self._made = False
        self._write(str(run_dir))

    def _write(self, run_dir: str | None) -> None:
        text = json.dumps({"pid": os.getpid(), "run_dir": run_dir, "before": self._before}).encode()
        try:
            os.ftruncate(self._file, 0)
            if os.pwrite(self._file, text, 0) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise UserError(
                f"{self._path}: cannot be written ({error.strerror}): make room there"
            ) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._made:  # no run: nothing stays behind
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._file)
