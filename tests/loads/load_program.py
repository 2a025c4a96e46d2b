"""Running a load as the real program it is, for the tests of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import acceptance

ROOT = Path(acceptance.__file__).resolve().parent.parent
CPUS = sorted(os.sched_getaffinity(0))[:2]  # one core is enough where there are no two
CORES = ";".join(map(str, CPUS))
COMPONENTS = [f"core:{cpu}" for cpu in CPUS]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=60
    )


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen within 30 s"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Whether a process has ended; in a container without an init it may stay
    as a zombie for ever.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
