"""What the harness itself costs, on this machine, in one run.

    python benchmarks/harness.py [--profile smoke]

- wall time of `rigproof accept` less the time of the programs that it ran for its load session (aim: under 3 s);
- time to answer: the whole process `rigproof --version`, and importing everything a run needs to begin (aim: under 0.3 s);
- peak resident memory of the supervisor and of the session beside it, loads not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from acceptance import resources
from acceptance.core.record import CheckStarted, SessionEnded, ToolRan
from acceptance.journal import reader

RUNS = 5
TOGETHER = "together.burn"


def timed(argv: list[str]) -> float:
    """Median wall seconds of a command."""
    took = []
    for _ in range(RUNS):
        began = time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        took.append(time.monotonic() - began)
    return statistics.median(took)


def peak_kib(pid: int) -> int:
    """Highest resident memory of a process so far; 0 once it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


def sessions(root: int) -> list[int]:
    """Process ids of pytest sessions below a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"pytest" in words and b"acceptance.session.plugin" in words and int(entry.name) != root:
                    found.append(int(entry.name))
    return found


def accept(profile: str, out: Path) -> tuple[float, int, int, int]:
    """Run accept: wall seconds, exit code, and peak KiB of supervisor and session."""
    machine = resources.locate("machines") / "cpu-only.toml"
    argv = [sys.executable, "-m", "acceptance", "accept", "--machine", str(machine)]
    argv += ["--profile", profile, "--station", "host", "--out", str(out)]
    began = time.monotonic()
    supervisor_kib = session_kib = 0
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            supervisor_kib = max(supervisor_kib, peak_kib(process.pid))
            session_kib = max([session_kib, *(peak_kib(pid) for pid in sessions(process.pid))])
            time.sleep(0.1)
        return time.monotonic() - began, process.returncode, supervisor_kib, session_kib


def main() -> int:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description="What the harness itself costs.")
    parser.add_argument("--profile", default="smoke")
    options = parser.parse_args()
    version = timed([sys.executable, "-m", "acceptance", "--version"])
    imports = timed([sys.executable, "-c", "import acceptance.__main__, acceptance.cli.accept"])
    bare = timed([sys.executable, "-c", "pass"])
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as folder:
        wall, code, supervisor_kib, session_kib = accept(options.profile, Path(folder))
        entries = reader.read(Path(folder) / "latest").entries
    loads = [
        entry.body for entry in entries if isinstance(entry.body, ToolRan) and entry.segment == "journal-load.jsonl"
    ]
    checks = sum(isinstance(entry.body, CheckStarted) for entry in entries)
    ended = [entry.body for entry in entries if isinstance(entry.body, SessionEnded)]
    # The programs of the burn run side by side: the longest of them is what the machine was busy with.
    together = [load.seconds for load in loads if load.check == TOGETHER]
    busy = sum(load.seconds for load in loads if load.check != TOGETHER) + max(together, default=0.0)
    print(
        f"harness cost          {wall - busy:.2f} s = {wall:.2f} s wall - {busy:.2f} s in {len(loads)} loads (aim: < 3 s)"
    )
    print(f"  {options.profile}, exit {code}, {checks} checks in {len(ended)} sessions")
    print(f"answer                {version:.3f} s for --version (python alone {bare:.3f} s)")
    print(f"import of a run       {imports - bare:.3f} s beside python's own start (aim: < 0.3 s)")
    print(f"peak memory           {supervisor_kib / 1024:.0f} MiB supervisor, {session_kib / 1024:.0f} MiB session")
    return 0


if __name__ == "__main__":
    sys.exit(main())
