"""`python -m selftest.beside_on_gpu`: whether what runs side by side moves what it measures, on
this machine's own GPUs.

The checks of `gpu-load` and of `host-load` run by themselves and then side by side, in turns, so
that a machine that gets warmer moves both. Where there are two GPUs or more, the checks that load
several at once (EACH) also run on each GPU alone and then on all. For every figure a table has the
median of each kind of runs, the difference, and what two values of a sound part may differ by
(`fixtures/measurements/`). Counts are 0 on a sound machine, and each run must pass anyway.

It needs what `rigproof accept --station host` needs: a GPU, torch, the tools; no engine.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance import resources
from acceptance.core.limit import number
from acceptance.core.plan import GPU_LOAD, HOST_LOAD, Plan, Session
from acceptance.history import noise
from acceptance.history.noise import NoiseBook
from acceptance.journal import run_folder
from acceptance.run import planning
from acceptance.station.options import Options
from selftest.nights_on_gpu import alarms, own_gpus, rigproof

TABLE = "side-by-side.md"
SIDES: tuple[Session, Session] = (GPU_LOAD, HOST_LOAD)
# Those that load several GPUs at once, and whose figures are of one GPU.
EACH = (
    "compute.gemm_together",
    "compute.copies",
    "link.host_copies",
    "link.device_alone",
    "link.bandwidth_test",
)
BOTH, ALL = "both", "all-gpus"  # the kinds of runs in which loads run side by side
TITLES = {BOTH: "GPUs and host, alone and side by side", ALL: "each GPU alone, and all GPUs"}
Figures = Mapping[tuple[str, str, str, str], float]  # by check, measurement, component and unit


@dataclass(frozen=True, slots=True)
class Moved:
    """One figure alone and beside the other side, each run by run, in its unit.

    `allowed` is the largest difference of the medians that means nothing.
    """

    name: tuple[str, str, str, str]
    alone: tuple[float, ...]
    beside: tuple[float, ...]
    allowed: float

    @property
    def by(self) -> float:
        """The median beside less that alone."""
        return statistics.median(self.beside) - statistics.median(self.alone)

    @property
    def too_far(self) -> bool:
        """Whether the medians differ by more than noise, or a value is no number."""
        told = all(map(math.isfinite, (*self.alone, *self.beside)))
        return not told or not abs(self.by) <= self.allowed

    def row(self) -> str:
        """A row of the table."""
        check, measurement, component, unit = self.name
        middle = statistics.median(self.alone)
        share = f"{100.0 * self.by / middle:+.2f} %" if middle else number(self.by)
        told = [" ".join(map(number, values)) for values in (self.alone, self.beside)]
        end = "**moved**" if self.too_far else "within"
        cells = [f"`{check}` `{measurement}` {component}", *told, unit, share, number(self.allowed)]
        return f"| {' | '.join(cells)} | {end} |"


HEAD = [
    "| figure | alone | side by side | unit | difference of the medians | allowed | |",
    "|---|---|---|---|---|---|---|",
]


def figures(verdict: Mapping[str, object]) -> Figures:
    """The figures of a verdict.json that have a value, but for counts."""
    found = {}
    checks = verdict["checks"]
    assert isinstance(checks, list)
    for check in checks:
        for one in check["measurements"]:
            if one["unit"] != "count" and "value" in one:
                name = (check["id"], one["measurement"], one["component"], one["unit"])
                found[name] = float(one["value"])
    return found


def compared(
    alone: Sequence[Figures], beside: Sequence[Figures], book: NoiseBook, *, virtual: bool
) -> list[Moved]:
    """Every figure of both kinds of runs, what moved farthest first.

    One that a run lacks is no number there, and so has moved.
    """
    nothing = float("nan")
    found = []
    for name in {name: None for one in alone for name in one}:
        values = [tuple(one.get(name, nothing) for one in runs) for runs in (alone, beside)]
        spread = book.spread(name[1], name[3], same_part=True, virtual=virtual)
        middles = [statistics.median(one) for one in values]
        found.append(Moved(name, values[0], values[1], spread.between(*middles)))
    return sorted(found, key=lambda one: (not one.too_far, -abs(one.by)))


def sides(plan: Plan) -> dict[Session, tuple[str, ...]]:
    """The checks that are due on either side, by session."""
    return {side: tuple(check.id for check in plan.share(side)) for side in SIDES}


def kinds(plan: Plan) -> dict[str, dict[str, tuple[str, ...]]]:
    """The kinds of runs as arguments of `rigproof accept`, by name, those side by side last.

    They are by the kind that they are compared with; a group without checks is left out.
    """
    of_side = sides(plan)
    both: dict[str, tuple[str, ...]] = {side: _only(of_side[side]) for side in SIDES}
    both[BOTH] = _only([one for side in SIDES for one in of_side[side]])
    each = [check.id for check in plan.checks if check.id in EACH]
    every = {str(gpu): (*_only(each), "--gpus", str(gpu)) for gpu in plan.gpus}
    every[ALL] = _only(each)
    found = {BOTH: both} if all(of_side.values()) else {}
    return found | ({ALL: every} if each and len(plan.gpus) > 1 else {})


def _only(checks: Sequence[str]) -> tuple[str, ...]:
    return "--only", ",".join(checks)


def main(argv: Sequence[str] | None = None) -> int:
    """0 where every run passed and no figure moved, else 1; 2 where there is no GPU, or nothing
    would run side by side.
    """
    parser = argparse.ArgumentParser(prog="python -m selftest.beside_on_gpu", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a new folder of the runs")
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind")
    parser.add_argument("--profile", default="accept", help="whose loads run, for its seconds")
    parser.add_argument("--machine", type=Path, help="the machine file")
    given = parser.parse_args(argv)
    if not own_gpus():
        print(
            "no GPU of NVIDIA's driver is here: this is for a machine that has one",
            file=sys.stderr,
        )
        return 2
    prepared = planning.prepare(Options(machine_file=given.machine, profile=given.profile))
    groups = kinds(prepared.plan)
    if not groups:
        print(f"nothing runs side by side in the profile {given.profile}", file=sys.stderr)
        return 2
    every = {kind: which for group in groups.values() for kind, which in group.items()}
    found: dict[str, list[Figures]] = {kind: [] for kind in every}
    wrong: list[str] = []
    given.out.mkdir(parents=True, exist_ok=True)
    common = ["--profile", given.profile, "--station", "host", "--out", str(given.out)]
    common += ["--machine", str(given.machine)] if given.machine else []
    for turn in range(given.runs):
        for kind, which in every.items():
            made = given.out / f"{kind}-{turn}"
            code, seconds = rigproof("accept", *common, *which, "--run-dir-file", str(made))
            folder = Path(made.read_text().rstrip("\n")) if made.is_file() else None
            wrong += alarms(folder)
            print(f"{kind}: exit {code} after {seconds:.0f} s", flush=True)
            verdict = (folder or given.out) / run_folder.VERDICT
            found[kind].append(
                figures(json.loads(verdict.read_bytes())) if verdict.is_file() else {}
            )
    book, virtual = noise.read(resources.locate("noise.toml")), prepared.inventory.cpu.virtualised
    told_lines: list[str] = []
    moved = False
    for beside, group in groups.items():
        rows = [
            one
            for alone in group
            if alone != beside
            for one in compared(found[alone], found[beside], book, virtual=bool(virtual))
        ]
        moved = moved or not rows or any(one.too_far for one in rows)
        told_lines += [f"{TITLES[beside]}:", "", *HEAD, *(one.row() for one in rows), ""]
    told_lines += wrong
    (given.out / TABLE).write_text("\n".join([*told_lines, ""]), encoding="utf-8")
    print("\n".join(told_lines))
    return 1 if wrong or moved else 0


if __name__ == "__main__":
    sys.exit(main())
