"""The process table, read with psutil under any root directory.

No other module uses psutil; docs/adr/0013-psutil.md says what is read without it, and why.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

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
