"""`python -m selftest.nights_on_gpu`: a baseline and nights after it on this machine's own GPUs, in
place, and how far each figure moves.

Every run must pass, and none may be remarked upon: the machine was sound a few minutes ago, so what
a night says of it is a false alarm. Started again with the same `--out`, it goes on where it was
ended: a baseline that is there is not made again, and nights count together.

It needs what `rigproof nightly --station host` needs: a GPU, torch, the tools; no engine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from acceptance.core.limit import number
from acceptance.history import baseline_file, night_file, nights, queries
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night
from acceptance.history.trend import TrendSeries
from acceptance.journal import clock, run_folder

LIMIT_S = 900.0  # of one run; a night has ten minutes
NIGHTS = "nights.md"


def own_gpus() -> int:
    """How many GPUs NVIDIA's driver has on this machine; 0 without the driver."""
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


def rigproof(*arguments: str, limit_s: float = LIMIT_S) -> tuple[int, float]:
    """Start this rigproof on this terminal; its exit code, and after how many seconds it ended.

    Raises TimeoutExpired after `limit_s` seconds.
    """
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-P", "-m", "acceptance", *arguments], timeout=limit_s)
    return done.returncode, time.monotonic() - began


def alarms(folder: Path | None) -> tuple[str, ...]:
    """What a run's verdict says against the machine: its word where that is no PASS, and every
    remark; None where no run came about.
    """
    if folder is None:
        return ("no run came about",)
    if not (folder / run_folder.VERDICT).is_file():
        return (f"{folder.name} has no verdict",)
    verdict = json.loads((folder / run_folder.VERDICT).read_bytes())
    word = () if verdict["verdict"] == "PASS" else (f"the verdict is {verdict['verdict']}",)
    return (
        *word,
        *(f"remarked: {json.dumps(one, ensure_ascii=True)}" for one in verdict["warnings"]),
    )


def moved(courses: Iterable[TrendSeries]) -> list[str]:
    """A table in Markdown of how far each figure went over the nights, in per cent of its median;
    what went farthest comes first.

    Figures that were the same each night are counted below it.
    """
    rows, same = [], 0
    for course in courses:
        values = [point.value for point in course.points]
        middle, spread = statistics.median(values), max(values) - min(values)
        if len(values) < 2:
            continue
        if not spread:
            same += 1
            continue
        share = 100.0 * spread / abs(middle) if middle else float("inf")
        told = " ".join(map(number, values))
        name = f"`{course.check}` `{course.measurement}` {course.component}"
        rows.append((share, f"| {name} | {told} | {course.unit} | {share:.3g} |"))
    head = [
        "| measurement | night by night | unit | highest less lowest, % of the median |",
        "|---|---|---|---|",
    ]
    rows.sort(key=lambda row: -row[0])
    return [*head, *(row for _, row in rows), "", f"{same} more were the same each night."]


class NoBaselineRun(Exception):
    """The history does not hold the run of the baseline."""


def since_baseline(out: Path, machine_id: str) -> list[Night]:
    """The run that is the baseline, and the nights after it that measured something.

    Raises HistoryError, or NoBaselineRun.
    """
    baseline = baseline_file.read(out, machine_id)
    assert baseline is not None
    run_id = baseline.certificate.machine.run_id
    recorded, _ = nights.read(out, machine_id)
    count = queries.count_until(recorded, run_id)
    if count is None:
        raise NoBaselineRun(
            f"{night_file.folder(out, machine_id)}: does not hold {run_id}, the run of the "
            "baseline: give another folder with --out"
        )
    return [one for one in recorded[count - 1 :] if one.comparable]


def main(argv: Sequence[str] | None = None) -> int:
    """0 when baseline and nights are there and nothing was said against the machine, else 1; 2
    where there is no GPU.
    """
    try:
        return _nights(argv)
    except (HistoryError, NoBaselineRun) as error:
        print(error, file=sys.stderr)
    except subprocess.TimeoutExpired:
        print(f"a run was ended after {LIMIT_S:.0f} s", file=sys.stderr)
    return 1


def _nights(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m selftest.nights_on_gpu", description=__doc__)
    parser.add_argument(
        "--out", type=Path, required=True, help="the folder of the runs and their history"
    )
    parser.add_argument("--machine", type=Path, required=True, help="the machine file")
    parser.add_argument(
        "--nights",
        type=int,
        default=3,
        help="nights after the baseline, those that are there counted in",
    )
    parser.add_argument("--profile", default="nightly", help="of the run that becomes the baseline")
    given = parser.parse_args(argv)
    if not own_gpus():
        print(
            "no GPU of NVIDIA's driver is here: these nights are for a machine that has one",
            file=sys.stderr,
        )
        return 2
    out, machine_id = given.out, clock.machine_id(Path("/"))
    common = [
        "--machine",
        str(given.machine),
        "--station",
        "host",
        "--out",
        str(out),
    ]
    wrong: list[str] = []
    made = out / "run-dir"

    def night(verb: str, profile: str) -> bool:
        code, seconds = rigproof(verb, "--profile", profile, *common, "--run-dir-file", str(made))
        found = alarms(Path(made.read_text().rstrip("\n")) if made.is_file() else None)
        wrong.extend(found)
        print(
            f"{verb} --profile {profile}: exit {code} after {seconds:.0f} s, {len(found)} alarms",
            flush=True,
        )
        return code == 0

    def accepted() -> bool:
        passed = night("accept", given.profile)
        return (
            passed
            and rigproof("baseline", "accept", made.read_text().rstrip("\n"), "--out", str(out))[0]
            == 0
        )

    if baseline_file.read(out, machine_id) is None and not accepted():
        return 1
    before = since_baseline(out, machine_id)
    wrong.clear()  # the accepted run is one of these
    for one in before:
        wrong.extend(
            alarms(out / one.folder)
            if one.folder and (out / one.folder).is_dir()
            else [f"the folder of {one.run_id} is gone"]
        )
    for _ in range(len(before), given.nights + 1):
        if not night("nightly", "nightly"):
            break
    recorded, _ = nights.read(out, machine_id)
    eras = tuple({one.era for one in recorded})
    table = moved(queries.trend_series(recorded, eras))
    count = len(since_baseline(out, machine_id)) - 1
    print(f"{count} of {given.nights} nights after the baseline, {len(wrong)} alarms")
    told = [
        f"# {count} nights after a baseline",
        "",
        *table,
        "",
        "## Alarms",
        "",
        *(wrong or ["None."]),
    ]
    (out / NIGHTS).write_text("\n".join([*told, ""]), encoding="utf-8")
    return 0 if count >= given.nights and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
