"""`python -m selftest.minutes_on_gpu`: how long each profile takes on this machine's own GPUs,
beside what its plan said, and whether any run alarms.

Each profile runs whole, so many times (`--runs`), and every run must pass without a remark. The
table has the seconds from start to verdict, those of the plan before it and of the goal, and the
checks that took longest beside their planned seconds. Started again with the same `--out`, it goes
on where it was ended.

It needs what `rigproof accept --station host` needs: a GPU, torch, the tools; no engine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance import resources
from acceptance.core.record import CheckEnded, RunEnded
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.journal.segment import JournalError
from acceptance.reports.progress import eta_s
from acceptance.run import profile
from selftest.nights_on_gpu import alarms, own_gpus, rigproof

TABLE = "minutes.md"
RUNS = "smoke=5,accept=2,nightly=1,train=1"
LONGEST = 12  # checks of each profile in the table
LIMIT_S = 3600.0  # of one run: several times the longest goal


@dataclass(frozen=True, slots=True)
class Timed:
    """A run that has ended: its seconds, those that its plan said, and of its checks either.

    `goal_s` is None where the profile has no goal for so many GPUs. `alarms` is what its verdict
    says against the machine.
    """

    profile: str
    gpus: int
    planned_s: float
    seconds: float
    goal_s: float | None
    alarms: tuple[str, ...]
    checks: Mapping[str, tuple[float, float]]  # planned and measured

    def row(self) -> str:
        """A row of the table."""
        goal = "-" if self.goal_s is None else f"{self.goal_s:.0f}"
        share = f"{100.0 * (self.planned_s / self.seconds - 1.0):+.0f} %"
        said = "; ".join(self.alarms) or "none"
        cells = (self.profile, self.gpus, f"{self.planned_s:.0f}", f"{self.seconds:.0f}", share)
        return f"| {' | '.join(map(str, (*cells, goal, said)))} |"


def timed(run: Run, said: tuple[str, ...]) -> Timed:
    """The times of a run of which the verdict said this."""
    chosen = profile.read(resources.locate("profiles.toml"))[run.plan.profile]
    due = {check.id: check for check in run.plan.checks}
    took = {
        one.body.check: one.body.seconds
        for one in run.entries
        if isinstance(one.body, CheckEnded) and one.body.check in due
    }
    return Timed(
        run.plan.profile,
        len(run.plan.gpus),
        eta_s(run.plan),
        run.seconds,
        chosen.goal_s.of(len(run.plan.gpus)) if chosen.goal_s else None,
        said,
        {name: (due[name].expected_s, seconds) for name, seconds in took.items()},
    )


def table(found: Iterable[Timed]) -> list[str]:
    """The runs, and the checks that took longest in the first run of each profile, as Markdown."""
    runs = list(found)
    first = {one.profile: one for one in reversed(runs)}
    lines = [
        "| profile | GPUs | planned s | measured s | planned by | goal s | alarms |",
        "|---|---|---|---|---|---|---|",
        *(one.row() for one in runs),
    ]
    for name, one in sorted(first.items()):
        longest = sorted(one.checks.items(), key=lambda check: -check[1][1])[:LONGEST]
        lines += ["", f"## {name}", "", "| check | planned s | measured s |", "|---|---|---|"]
        lines += [f"| `{check}` | {due:.1f} | {took:.1f} |" for check, (due, took) in longest]
    return lines


def wanted(text: str) -> dict[str, int]:
    """How often each profile is to run. Raises ArgumentTypeError."""
    known = profile.read(resources.locate("profiles.toml"))
    found = {}
    for word in text.split(","):
        match = re.fullmatch(r"([a-z]+)=(\d{1,3})", word, re.ASCII)
        if match is None or match[1] not in known:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no PROFILE=COUNT; the profiles are {', '.join(known)}"
            )
        found[match[1]] = int(match[2])
    return found


def of_folder(folder: Path) -> Timed | None:
    """The times of a run folder; None of one that holds no run that came to its verdict."""
    try:
        run = journal_run.read(folder)
    except JournalError:
        return None
    ended = [one.body for one in run.entries if isinstance(one.body, RunEnded)]
    return timed(run, alarms(folder)) if any(one.complete for one in ended) else None


def made_before(marker: Path) -> Timed | None:
    """The run whose folder this file names, where it came to its verdict."""
    folder = Path(marker.read_text().rstrip("\n")) if marker.is_file() else None
    return of_folder(folder) if folder is not None else None


def main(argv: list[str] | None = None) -> int:
    """0 where every run was made and none alarmed, else 1; 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m selftest.minutes_on_gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--machine", type=Path, help="the machine file")
    parser.add_argument("--runs", type=wanted, default=RUNS, help="default %(default)s")
    given = parser.parse_args(argv)
    if not own_gpus():
        told = "no GPU of NVIDIA's driver is here: this is for a machine that has one"
        print(told, file=sys.stderr)
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    common = ["--station", "host", "--out", str(given.out)]
    common += ["--machine", str(given.machine)] if given.machine else []
    found: list[Timed] = []
    whole = True
    for name, count in given.runs.items():
        for turn in range(count):
            made = given.out / f"{name}-{turn}"
            one = made_before(made)
            if one is None:
                made.unlink(missing_ok=True)
                asked = ["accept", "--profile", name, *common, "--run-dir-file", str(made)]
                try:
                    rigproof(*asked, limit_s=LIMIT_S)
                except subprocess.TimeoutExpired as error:
                    print(f"{name}: ended after {error.timeout:.0f} s", file=sys.stderr)
                one = made_before(made)
            whole = whole and one is not None
            found += [one] if one is not None else []
            print(one.row() if one is not None else f"{name}: no whole run", flush=True)
            (given.out / TABLE).write_text("\n".join([*table(found), ""]), encoding="utf-8")
    print("\n".join(table(found)))
    return 0 if whole and not any(one.alarms for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
