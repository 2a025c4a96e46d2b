"""The process table as psutil reads it, under any root.

This is the only `psutil`; what is read by hand, and why: docs/adr/0013-psutil.md.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

# psutil has one root for all threads. Reentrant: a signal's handler may read, too.
_ROOT = threading.RLock()


@dataclass(frozen=True, slots=True)
class Entry:
    """A process: its parent (0: none), and the bytes of its memory (0: it is about to end)."""

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
    """Every process id that can be seen, in order. Raises OSError without /proc."""
    with _under(root):
        try:
            return tuple(psutil.pids())
        except IndexError:  # psutil asks for the lowest of none: a root of a test may be empty
            return ()


def entry(pid: int, root: Path = Path("/")) -> Entry | None:
    """One process; None where there is none of this number, or none that may be looked at."""
    with _under(root):
        try:
            process = psutil.Process(pid)
            return Entry(process.ppid(), process.memory_info().vms)
        except (psutil.Error, OSError, IndexError):  # IndexError: a line cut short
            return None
