"""What the harness itself costs, on this machine, in one run, where Python may keep bytecode.

    python benchmarks/harness.py [--profile smoke]

- importing everything that a run needs to begin, beside Python's own start (target: 0.3 s);
- `rigproof plan`, the whole process (target: 0.7 s), and its first time, when pytest collects the
  checks;
- wall time of `rigproof accept`, with loads of a second, less that of the programs that it ran for
  its load session (target: 3 s), and what supervisor and sessions take of the processor;
- time to answer: the whole process `rigproof --version`;
- peak resident memory of the supervisor and of the session beside it, loads not counted.

Beside each stands how many times as long it takes as `import pytest`, measured in the same run: a
slow or busy machine moves both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance import resources
from acceptance.core.evidence import ToolRan
from acceptance.core.plan import LOAD_SESSIONS, PHASES, segment_of
from acceptance.core.record import CheckStarted, SessionEnded
from acceptance.journal import reader
from acceptance.process import reaper

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
TOGETHER = "together.burn"
IMPORT_S, PLAN_S, COST_S = 0.3, 0.7, 3.0
MACHINE = resources.locate("machines") / "cpu-only.toml"


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a command: on the clock, and of the processor."""

    wall_s: float
    cpu_s: float

    def beside(self, other: Took) -> Took:
        """What is left of it without another."""
        return Took(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)


def processor_s() -> float:
    """Seconds of the processor that ended children have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(environment: Mapping[str, str], *argv: str, runs: int = RUNS) -> Took:
    """The quickest of some runs, by clock and by processor: others use the machine, too."""
    took = []
    for _ in range(runs):
        began, used = time.monotonic(), processor_s()
        subprocess.run(
            [sys.executable, *argv], check=True, stdout=subprocess.DEVNULL, env=environment
        )
        took.append((time.monotonic() - began, processor_s() - used))
    return Took(min(wall for wall, _ in took), min(cpu for _, cpu in took))


def say(what: str, wall_s: float, told: str, pytest: Took, target_s: float | None = None) -> None:
    """One figure, its share of the target, and how it stands to `import pytest`."""
    share = f"; {wall_s / target_s:.2f} of {target_s:g} s" if target_s else ""
    print(
        f"{what:<20} {wall_s:.3f} s ({told}){share}; {wall_s / pytest.wall_s:.1f} x import pytest"
    )


@dataclass(slots=True)
class Cost:
    """What was seen of a process while it ran: its highest resident memory, its
    seconds of the processor.
    """

    peak_kib: int = 0
    cpu_s: float = 0.0

    def look(self, pid: int) -> None:
        """Look once more; one that has ended stays as it was seen last."""
        with contextlib.suppress(OSError):
            told = Path(f"/proc/{pid}/status").read_text()
            if found := re.search(r"^VmHWM:\s+(\d+) kB$", told, re.MULTILINE):
                self.peak_kib = int(found[1])
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            self.cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sessions(root: int) -> list[int]:
    """Process ids of pytest sessions below a process, without the reapers over them."""
    found = []
    for pid in reaper.descendants(root):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:4] == [b"-P", b"-m", b"pytest"]:
                found.append(pid)
    return found


def accept(
    environment: Mapping[str, str], profile: str, out: Path
) -> tuple[float, int, Cost, list[Cost]]:
    """Run accept: wall seconds, exit code, and what supervisor and sessions took."""
    argv = [sys.executable, "-m", "acceptance", "accept", "--machine", str(MACHINE)]
    argv += ["--profile", profile, "--burn", "1", "--station", "host", "--out", str(out)]
    began = time.monotonic()
    supervisor, others = Cost(), defaultdict[int, Cost](Cost)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=environment) as process:
        while process.poll() is None:
            supervisor.look(process.pid)
            for pid in sessions(process.pid):
                others[pid].look(pid)
            time.sleep(0.1)
        wall_s = time.monotonic() - began
    return wall_s, process.returncode, supervisor, list(others.values())


def start(environment: Mapping[str, str]) -> Took:
    """Print what it takes to begin; returns `import pytest`, which the rest stands beside."""
    bare = timed(environment, "-c", "pass")
    pytest = timed(environment, "-c", "import pytest").beside(bare)
    imports = timed(environment, "-c", "import acceptance.__main__, acceptance.cli.accept").beside(
        bare
    )
    version = timed(environment, "-m", "acceptance", "--version")
    plan = ["-m", "acceptance", "plan", "--machine", str(MACHINE)]
    first = timed(environment, *plan, runs=1)
    planned = timed(environment, *plan)
    told = "{:.3f} s of processor".format
    print(
        f"{'import pytest':<20} {pytest.wall_s:.3f} s ({told(pytest.cpu_s)}) beside python's "
        f"own {bare.wall_s:.3f} s"
    )
    say("import of a run", imports.wall_s, told(imports.cpu_s), pytest, IMPORT_S)
    say("plan", planned.wall_s, told(planned.cpu_s), pytest, PLAN_S)
    say("  the first time", first.wall_s, told(first.cpu_s), pytest)
    say("answer to --version", version.wall_s, told(version.cpu_s), pytest)
    return pytest


def run(environment: Mapping[str, str], profile: str, pytest: Took) -> None:
    """Print what a run costs beside its loads."""
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as folder:
        wall, code, supervisor, others = accept(environment, profile, Path(folder))
        entries = reader.read(Path(folder) / "latest").entries
    loads = [
        (entry.segment, entry.body)
        for entry in entries
        if isinstance(entry.body, ToolRan)
        and entry.segment in {segment_of(session) for session in LOAD_SESSIONS}
    ]
    checks = sum(isinstance(entry.body, CheckStarted) for entry in entries)
    ended = [entry.body for entry in entries if isinstance(entry.body, SessionEnded)]
    # The programs of the burn run side by side: the longest of them is what the machine was busy
    # with. So do the sessions of a phase.
    together = [load.seconds for _, load in loads if load.check == TOGETHER]
    busy = max(together, default=0.0)
    for phase in PHASES:
        busy += max(
            sum(
                load.seconds
                for name, load in loads
                if name == segment_of(session) and load.check != TOGETHER
            )
            for session in phase
        )
    own_s = supervisor.cpu_s + sum(one.cpu_s for one in others)
    told = f"{wall:.2f} s - {busy:.2f} s in {len(loads)} loads; {own_s:.1f} s of processor"
    say("harness cost", wall - busy, told, pytest, COST_S)
    print(f"  {profile}, exit {code}, {checks} checks in {len(ended)} sessions")
    session_kib = max(one.peak_kib for one in others)
    peaks = f"{supervisor.peak_kib / 1024:.0f} MiB supervisor, {session_kib / 1024:.0f} MiB session"
    print(f"{'peak memory':<20} {peaks}")


def main() -> int:
    """Print one line a figure."""
    parser = argparse.ArgumentParser(description="What the harness itself costs.")
    parser.add_argument("--profile", default="smoke")
    options = parser.parse_args()
    # As `make` leaves it behind, whatever has been edited since.
    compiled = [
        "-I",
        "-m",
        "compileall",
        "-q",
        "--invalidation-mode",
        "checked-hash",
        str(ROOT / "acceptance"),
    ]
    subprocess.run([sys.executable, *compiled], check=True)
    with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as cache:
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("PYTHON")
        }
        environment["XDG_CACHE_HOME"] = cache
        run(environment, options.profile, start(environment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
