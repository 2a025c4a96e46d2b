"""`python -m selftest.on_gpu`: what only a GPU can show of the self-test, on this machine's own
GPUs.

The faults of the catalogue that are made inside a load (`loads.burn`, `loads.vram`) are played
again, made by the load itself on the GPU (`--inject`) and found there, through `rigproof accept` in
place, its journal, fold and JUnit; then whole clean runs, of which each must pass. Nothing of the
machine is replaced but the interpreter's command line, which gets `--inject` added: such a run
never passes.

It needs a GPU, torch, and what `rigproof accept --station host` needs; no engine, and no rights
beyond those of a run.
"""

from __future__ import annotations

import argparse
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rig import Rig
from run_left import Run

from acceptance.journal import clock, provenance
from selftest import results, trial
from selftest.fault import Named, read
from selftest.nights_on_gpu import own_gpus
from selftest.row import FalseAlarms, Row

FOLDER = "selftest-gpu"
INJECTING = ("burn", "vram")
SECONDS = 7.0  # of burn: every format has its two turns
LIMIT_S = 400.0
WRAPPER = """\
#!/bin/bash
if [ "$1" = -m ] && [ "$2" = acceptance.loads.{load}.load ]; then set -- "$@" --inject {fault}; fi
exec -a "$0" "$0.real" "$@"
"""


def playable(catalogue: Sequence[Named], gpus: int) -> tuple[Named, ...]:
    """Those of the catalogue that a load makes by itself on the first GPU of a
    machine with so many.
    """
    found = []
    for named in catalogue:
        loads = named.fault.loads
        alone = len(loads) == 1 and not (
            named.fault.tools or named.fault.nvml or named.fault.programs
        )
        for name, load in loads.items() if alone else ():
            if name in INJECTING and load.fault and load.gpu == 0 and not load.dtype and gpus:
                found.append(named)
    return tuple(found)


def interpreter(folder: Path, load: str, fault: str) -> Path:
    """An environment like this one whose `python` starts that load with that fault; returns the
    interpreter's path.
    """
    venv.EnvBuilder(symlinks=True).create(folder)
    python = folder / "bin/python"
    python.rename(python.with_name("python.real"))
    python.write_text(WRAPPER.format(load=load, fault=fault), encoding="utf-8")
    python.chmod(0o755)
    (site,) = folder.glob("lib/python3*/site-packages")
    own = [
        Path(__file__).resolve().parents[1],
        *(Path(one) for one in sys.path if "site-packages" in one),
    ]
    (site / "this.pth").write_text("".join(f"{one}\n" for one in own), encoding="utf-8")
    return python


def _accept(home: Path, python: Path, arguments: Sequence[str]) -> tuple[Run, float]:
    """`rigproof accept` in place, and when it was started, in seconds since boot."""
    home.mkdir(parents=True)
    rig = Rig(home)
    boot_s, began = clock.boot_s(), time.monotonic()
    argv = ["accept", "--profile", "smoke", "--station", "host", "--out", str(rig.out), *arguments]
    try:
        started = rig.start(argv, program=[str(python), "-P", "-m", "acceptance"])
        return rig.finish(started, set(), began, LIMIT_S), boot_s
    finally:
        rig.clear()


def play(named: Named, home: Path, seconds: float) -> Iterator[Row]:
    """One fault, in a run of its own."""
    ((load, told),) = named.fault.loads.items()
    own = home / named.name
    python = interpreter(own / "python", load, told.fault)
    run, boot_s = _accept(
        own / "run", python, ["--only", str(named.fault.only), "--burn", f"{seconds:g}"]
    )
    yield from trial.rows(named, run, boot_s, home)


def clean(home: Path, runs: int, machine: Path | None) -> FalseAlarms:
    """Whole runs of the smoke profile with nothing injected. One that is no PASS is an alarm."""
    told, remarked = [], 0
    declared = ["--machine", str(machine.absolute())] if machine else []
    for number in range(runs):
        run, _ = _accept(home / f"clean-{number}", Path(sys.executable), declared)
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
    for named in () if given.no_faults else playable(read(), gpus):
        if given.only in named.name:
            for row in play(named, home.absolute(), given.seconds):
                print(
                    (
                        f"{row.family}: {row.fault}: "
                        f"{row.message if row.caught else f'MISSED: {row.wrong}'}"
                    ),
                    flush=True,
                )
                rows.append(row)
    alarms = (clean(home.absolute(), given.clean, given.machine),) if given.clean else ()
    kind = f"GPU, {given.seconds:g} s"
    outcome = results.Outcome(
        clock.utc(),
        provenance.package_digest()[:12],
        kind,
        time.monotonic() - began,
        tuple(rows),
        alarms,
    )
    (home / "rows.json").write_bytes(msgspec.json.format(msgspec.json.encode(outcome.rows)))
    (home / "selftest.xml").write_bytes(results.junit(outcome))
    (home / "selftest.md").write_text(results.markdown(outcome), encoding="utf-8")
    results.show(outcome, Console(highlight=False))
    print(outcome.closing_line())
    return 0 if outcome.good or (given.no_faults and not outcome.false_alarms) else 1


if __name__ == "__main__":
    sys.exit(main())
