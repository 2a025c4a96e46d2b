"""Planned time of each profile, beside its goal and the last measured time.

    python benchmarks/planned_times.py

The plans are of the shipped machine files with GPUs, each as the machine in it would have it: with
processors and RAM, a disk to test and steps of power (`tests/machine/synthetic_machines.py`). The
goals are those of `fixtures/profiles.toml`. Measured is the last recorded run of that profile on
so many GPUs (`fixtures/recordings/*/runs`), a whole one where there is any: its seconds from start
to verdict, those that its own plan said then, its card and its date.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("", "core", "expect", "machine", "observe", "nvml", "tools")
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / name) for name in TESTS)]
# what makes a run's time another than that of the profile
OTHER = re.compile(r"--(?:only|burn) \S+")
HEAD = (
    f"{'profile':<8} {'GPUs':>4}  {'machine file':<24} {'goal s':>6} {'planned s':>9} {'ratio':>6}"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A recorded run: its profile and GPUs, when and on what it was, and its seconds."""

    profile: str
    gpus: int
    card: str
    utc: str
    seconds: float
    planned_s: float
    options: str

    def __str__(self) -> str:
        told = f"{self.seconds:.0f} s, planned then {self.planned_s:.0f} s"
        options = f" ({self.options})" if self.options else ""
        return f"{told}: {self.gpus} x {self.card}, {self.utc[:10]}{options}"


def recorded() -> Iterator[Measured]:
    """Every recorded run."""
    from runs import unpacked

    from acceptance.journal import run
    from acceptance.reports.progress import eta_s

    for folder in sorted(ROOT.glob("fixtures/recordings/*/runs")):
        for entry in tomllib.loads((folder / "INDEX.toml").read_text(encoding="utf-8"))["run"]:
            with tempfile.TemporaryDirectory(prefix="rigproof-bench-") as scratch:
                found = run.read(unpacked(folder / entry["name"], Path(scratch) / "run"))
            yield Measured(
                found.plan.profile,
                len(found.plan.gpus),
                entry["card"],
                found.first.utc,
                found.seconds,
                eta_s(found.plan),
                " ".join(OTHER.findall(entry["command"])),
            )


def main() -> int:
    """Print a line for each profile and machine file."""
    from boxes import BOXES
    from synthetic_machines import prepared_plan

    from acceptance import resources
    from acceptance.reports.progress import eta_s
    from acceptance.run import profile

    last: dict[tuple[str, int], Measured] = {}
    for one in sorted(recorded(), key=lambda one: (not one.options, one.utc)):
        last[one.profile, one.gpus] = one
    print(f"{HEAD}  last measured")
    for name, chosen in profile.read(resources.locate("profiles.toml")).items():
        told = set()
        for box in sorted(BOXES.values(), key=lambda box: (box.count, box.file)):
            goal_s = chosen.goal_s.of(box.count) if chosen.goal_s else None
            planned_s = eta_s(prepared_plan(box, name))
            measured = "" if box.count in told else last.get((name, box.count), "none recorded")
            told.add(box.count)
            goal, ratio = (f"{goal_s:.0f}", f"{planned_s / goal_s:.2f}") if goal_s else ("-", "-")
            print(
                f"{name:<8} {box.count:>4}  {box.file:<24} {goal:>6} {planned_s:>9.0f} "
                f"{ratio:>6}  {measured}".rstrip()
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
