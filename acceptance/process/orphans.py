"""Finds and kills the processes that a run left behind, wherever they are in the process tree.

They are found by the run id in their environment, and by the session's name.

The process table, read with psutil under any root directory.

No other module uses psutil; docs/adr/0013-psutil.md says what is read without it, and why.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from acceptance.core.message import Message, english

# psutil has one root for all threads. Reentrant, because a signal handler may read the table too.
_ROOT = threading.RLock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A process: parent (0: none) and size of its memory in bytes (0: the process is ending)."""

    parent: int
    memory_bytes: int


@contextlib.contextmanager
def _under(root: Path) -> Iterator[None]:
    with _ROOT:
        before = psutil.PROCFS_PATH
        psutil.PROCFS_PATH = str(root / "proc")
        try:
            yield
        finally:
            psutil.PROCFS_PATH = before


def pids(root: Path = Path("/")) -> tuple[int, ...]:
    """All visible process ids, in order. Raises OSError without /proc."""
    with _under(root):
        try:
            return tuple(psutil.pids())
        except IndexError:  # psutil takes the lowest process id; the root of a test may have none
            return ()


def entry(pid: int, root: Path = Path("/")) -> Entry | None:
    """The process with this id; None if there is none or it is not readable."""
    with _under(root):
        try:
            process = psutil.Process(pid)
            return Entry(process.ppid(), process.memory_info().vms)
        except (psutil.Error, OSError, IndexError):  # IndexError: a truncated line
            return None


# A process that outlives SIGKILL for this long hangs in the kernel (a lost GPU, a dead disk) or
# belongs to another user.
KILL_S = 2.0


def find(run_id: str, root: Path = Path("/"), session: str | None = None) -> dict[int, str]:
    """Process id and command line of every process of this run, as far as they are readable.

    With `session` only that session's.
    """
    marks = {f"RIGPROOF_RUN={run_id}".encode()}
    marks |= {f"RIGPROOF_SESSION={session}".encode()} if session else set()
    found: dict[int, str] = {}
    for pid in pids(root):
        if pid != os.getpid():
            folder = root / "proc" / str(pid)
            with contextlib.suppress(OSError):  # it ended or belongs to another user
                if marks <= set((folder / "environ").read_bytes().split(b"\0")):
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    found[pid] = b" ".join(words).decode("utf-8", errors="replace").strip()[:120]
    return found


def sweep(run_id: str, root: Path = Path("/"), session: str | None = None) -> tuple[Message, ...]:
    """Kill every process of this run, or of one session of it, and wait until they are gone.

    Returns each process: its command line and process id.
    """
    met: dict[int, str] = {}
    end = time.monotonic() + KILL_S
    while (
        family := find(run_id, root, session)
    ) and time.monotonic() < end:  # the next round finds the child of a process that just forked
        met |= family
        for pid in family:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return tuple(
        Message(
            english("undying_process", "{command} (process {pid}, which does not die)")
            if pid in family
            else "process",
            {"command": line, "pid": pid},
        )
        for pid, line in met.items()
    )
