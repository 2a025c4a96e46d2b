"""Processes that a run left behind, found by the run id in their environment, wherever in the process tree they ended up."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def find(run_id: str, root: Path = Path("/")) -> dict[int, str]:
    """Process ids and command lines of every process of this run that we may see."""
    mark = f"RIGPROOF_RUN={run_id}".encode()
    found: dict[int, str] = {}
    for entry in (root / "proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it ended, or it is another user's
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = b" ".join(words).decode("utf-8", errors="replace").strip()[:120]
    return found


def sweep(run_id: str, root: Path = Path("/")) -> tuple[str, ...]:
    """Kill every process of this run; returns what they were."""
    killed: list[str] = []
    for _ in range(10):  # one that was just forking may show its child only at the next look
        family = find(run_id, root)
        if not family:
            break
        for pid, line in family.items():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                killed.append(f"{line} (process {pid})")
    return tuple(killed)
