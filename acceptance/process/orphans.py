"""Processes that a run left behind, found by the run id in their environment, wherever in the
process tree they ended up.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from acceptance.process import table

# A process that outlives SIGKILL for so long hangs in the kernel (a lost GPU, a dead disk), or is
# not ours to kill.
KILL_S = 2.0


def find(run_id: str, root: Path = Path("/")) -> dict[int, str]:
    """Process ids and command lines of every process of this run that we may see."""
    mark = f"RIGPROOF_RUN={run_id}".encode()
    found: dict[int, str] = {}
    for pid in table.pids(root):
        if pid != os.getpid():
            folder = root / "proc" / str(pid)
            with contextlib.suppress(OSError):  # it ended, or it is another user's
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    words = (folder / "cmdline").read_bytes().split(b"\0")
                    found[pid] = b" ".join(words).decode("utf-8", errors="replace").strip()[:120]
    return found


def sweep(run_id: str, root: Path = Path("/")) -> tuple[str, ...]:
    """Kill every process of this run, and wait until they are gone; returns
    what they were, one line each.
    """
    met: dict[int, str] = {}
    end = time.monotonic() + KILL_S
    while (
        family := find(run_id, root)
    ) and time.monotonic() < end:  # one that was just forking shows its child at the next look
        met |= family
        for pid in family:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return tuple(
        f"{line} (process {pid}{', which does not die' if pid in family else ''})"
        for pid, line in met.items()
    )
