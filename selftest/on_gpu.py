"""`python -m selftest.on_gpu`: what only a GPU can show of the self-test, on this machine's own
GPUs.

Each fault that a load makes by itself on the GPU (`--inject`, listed in `fixtures/injections.toml`)
is made in a run of `rigproof accept` in place, and must be found there: the run's journal, judged
again, has the finding of the check, measurement and component that the list names. Then whole clean
runs, of which each must pass. Nothing of the machine is replaced but the interpreter's command
line, which gets `--inject` added: such a run never passes. What needs more GPUs or other number
formats than are here is named as not offered.

It needs a GPU, torch, and what `rigproof accept --station host` needs; no engine, and no rights
beyond those of a run.
"""

from __future__ import annotations

import argparse
import sys
import time
import venv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import SubprocessError

import msgspec
from rich.console import Console
from rig import Rig
from run_left import Run

from acceptance.journal import clock, provenance
from acceptance.journal import run as journal_run
from acceptance.wording import words
from acceptance.wording.errors import WordedError
from selftest import results, trial
from selftest.injection import Injection, read
from selftest.nights_on_gpu import own_gpus
from selftest.row import FalseAlarms, NotOffered, Row

FOLDER = "selftest-gpu"
SECONDS = 7.0  # of burn: every format has its two turns
LIMIT_S = 400.0
WRAPPER = """\
#!/bin/bash
if [ "$1" = -m ] && [ "$2" = acceptance.loads ] && [[ $3 == *'"load":"{program}"'* ]]; then
    set -- "$1" "$2" "${{3%\\}}}},\\"inject\\":\\"{fault}\\"}}"
fi
exec -a "$0" "$0.real" "$@"
"""


def interpreter(folder: Path, program: str, fault: str) -> Path:
    """An environment like this one whose `python` starts that module of a load with that fault;
    returns the interpreter's path.
    """
    venv.EnvBuilder(symlinks=True).create(folder)
    python = folder / "bin/python"
    python.rename(python.with_name("python.real"))
    python.write_text(WRAPPER.format(program=program, fault=fault), encoding="utf-8")
    python.chmod(0o755)
    (site,) = folder.glob("lib/python3*/site-packages")
    own = [
        Path(__file__).resolve().parents[1],
        *(Path(one).resolve() for one in sys.path if one),
    ]
    (site / "this.pth").write_text("".join(f"{one}\n" for one in own), encoding="utf-8")
    return python


def _accept(home: Path, python: Path, arguments: Sequence[str]) -> tuple[Run, float]:
    """`rigproof accept` in place, and when it was started, in seconds since boot."""
    home.mkdir(parents=True)
    rig = Rig(home)
    boot_s, began = clock.boot_s(), time.monotonic()
    argv = ["accept", "--station", "host", "--out", str(rig.out), *arguments]
    try:
        started = rig.start(argv, program=[str(python), "-P", "-m", "acceptance"])
        return rig.finish(started, set(), began, LIMIT_S), boot_s
    finally:
        rig.clear()


# What playing a fault may raise: none ends the self-test.
TROUBLE = (AssertionError, SubprocessError, WordedError, OSError, ValueError, KeyError)
Shown = tuple[list[Row], list[NotOffered]]


def play(injection: Injection, home: Path, gpus: int, seconds: float) -> Shown:
    """One fault, in a run of its own: its rows, and what of it is not offered here. Whatever goes
    wrong with playing it is a fault that was not caught.
    """
    own, began = home / injection.name, time.monotonic()
    arguments = ("--profile", injection.profile, "--only", injection.only)
    try:
        python = interpreter(own / "python", injection.load, injection.fault)
        run, boot_s = _accept(own / "run", python, [*arguments, "--burn", f"{seconds:g}"])
        return judged(injection, run, boot_s, home, gpus)
    except TROUBLE as error:
        why = " ".join(str(error).split())[:400]
        wrong = f"it could not be played: {type(error).__name__}: {why}"
        return [_row(injection, time.monotonic() - began, wrong=wrong)], []


def judged(injection: Injection, run: Run, boot_s: float, home: Path, gpus: int) -> Shown:
    """A row for each finding that the journal of a run must have, and those that are not offered:
    the plan of this machine has them of no component, and others of the same fault.
    """
    fault = injection.as_fault()
    if run.folder is None:
        return [
            _row(injection, run.seconds, wrong=f"no run was made: {run.err.strip()[-300:]}")
        ], []
    general = trial.whole(fault, run)
    read = journal_run.read(run.folder)
    expected = {one: one.due_in(read.plan) for one in injection.expected(gpus)}
    due = [one for one in expected.values() if one is not None]
    if not due:
        wrong = f"its plan has none of what must be found: {'; '.join(map(str, expected))}"
        return [_row(injection, run.seconds, wrong=wrong)], []
    left_out = [
        NotOffered(f"{injection.name} {one}", "the plan of this machine does not have it")
        for one, here in expected.items()
        if here is None
    ]
    rows, seconds = [], trial.seconds(fault.expect[0], run, boot_s)
    journal = str((run.folder / "journal.jsonl").relative_to(home))
    for one in due:
        told = [words.of(finding) for finding in one.found(read.verdict).values()]
        wrong = one.missing(read.verdict) or general
        row = _row(injection, seconds, str(one), "; ".join(told)[:300], wrong)
        rows.append(replace(row, run_id=run.folder.name, journal=journal))
    return rows, left_out


def _row(
    injection: Injection, seconds: float, what: str = "", message: str = "", wrong: str = ""
) -> Row:
    return Row(
        injection.family,
        f"{injection.name} {what}".rstrip(),
        "load",
        not wrong,
        injection.check,
        message,
        round(seconds, 1),
        wrong=wrong,
    )


def offered(
    every: Sequence[Injection], gpus: int, only: str = ""
) -> tuple[list[Injection], list[NotOffered]]:
    """Those whose names hold this word: what can be played on so many GPUs, and what cannot."""
    chosen = [one for one in every if only in one.name]
    left_out = [
        NotOffered(one.name, f"it needs {one.gpus} GPUs, and this machine has {gpus}")
        for one in chosen
        if one.gpus > gpus
    ]
    return [one for one in chosen if one.gpus <= gpus], left_out


def clean(home: Path, runs: int, machine: Path | None) -> FalseAlarms:
    """Whole runs of the smoke profile with nothing injected. One that is no PASS is an alarm."""
    told, remarked = [], 0
    declared = ["--machine", str(machine.absolute())] if machine else []
    arguments = ["--profile", "smoke", *declared]
    for number in range(runs):
        run, _ = _accept(home / f"clean-{number}", Path(sys.executable), arguments)
        if run.code or run.folder is None:
            told.append(f"{number}: {run.out.strip()[-300:]} {run.err.strip()[-300:]}")
        else:
            remarked += bool(run.verdict["warnings"])
        print(
            f"clean run {number + 1} of {runs}: {(run.out or run.err).strip().splitlines()[-1]}",
            flush=True,
        )
    return FalseAlarms(
        "real runs of the smoke profile on this GPU", runs, len(told), "; ".join(told), remarked
    )


def main(argv: Sequence[str] | None = None) -> int:
    """0 when every fault was caught and every clean run passed, else 1; 2 where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m selftest.on_gpu", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("reports"), help="where its folder goes")
    parser.add_argument("--only", default="", help="faults that hold this word in their names")
    parser.add_argument("--no-faults", action="store_true", help="clean runs alone")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of burn in each run with a fault"
    )
    parser.add_argument("--clean", type=int, default=5, help="whole runs with nothing injected")
    parser.add_argument("--machine", type=Path, help="the machine file of the clean runs")
    given = parser.parse_args(argv)
    gpus = own_gpus()
    if not gpus:
        print(
            (
                "no GPU of NVIDIA's driver is here: this part of the self-test is for a machine "
                "that has one"
            ),
            file=sys.stderr,
        )
        return 2
    began, home = time.monotonic(), given.out / FOLDER / clock.utc().replace(":", "")
    rows: list[Row] = []
    every = read()
    if not any(given.only in one.name for one in every):
        names = ", ".join(one.name for one in every)
        print(f"no fault holds {given.only!r}: choose of {names}", file=sys.stderr)
        return 2
    injections, left_out = offered(() if given.no_faults else every, gpus, given.only)
    for one in left_out:
        print(f"not offered here: {one.fault}: {one.why}", flush=True)
    for injection in injections:
        found, lacking = play(injection, home.absolute(), gpus, given.seconds)
        left_out += lacking
        for row in found:
            told = row.message if row.caught else f"MISSED: {row.wrong}"
            print(f"{row.family}: {row.fault}: {told}", flush=True)
        rows += found
    alarms = (clean(home.absolute(), given.clean, given.machine),) if given.clean else ()
    kind = f"GPU, {given.seconds:g} s"
    outcome = results.Outcome(
        clock.utc(),
        provenance.package_digest()[:12],
        kind,
        time.monotonic() - began,
        tuple(rows),
        alarms,
        not_offered=tuple(left_out),
    )
    (home / "rows.json").write_bytes(msgspec.json.format(msgspec.json.encode(outcome.rows)))
    (home / "selftest.xml").write_bytes(results.junit(outcome))
    (home / "selftest.md").write_text(results.markdown(outcome), encoding="utf-8")
    results.show(outcome, Console(highlight=False))
    print(outcome.closing_line())
    return 0 if outcome.good or (given.no_faults and not outcome.false_alarms) else 1


if __name__ == "__main__":
    sys.exit(main())
