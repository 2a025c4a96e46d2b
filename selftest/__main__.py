"""`python -m selftest`: shows what rigproof catches on this machine, and how little it takes.

Exit status: 0 when every fault was caught, no clean run raised an alarm and all was tried; 1 when
not; 2 for a usage error or a machine on which nothing can be proved.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import docker
import fake_driver
from rich.console import Console
from rig import Rig

from acceptance.core.message import SetupError, UserError
from acceptance.journal import clock, provenance
from acceptance.process.deadline import Deadline
from acceptance.run import lock
from acceptance.station.image import build
from selftest import clean, disk, interruption, programs, results, sensitivity, tampering, year
from selftest.alarms import false_alarms
from selftest.catalogue import TROUBLE, Stopped, Theatre, sweep
from selftest.fault import FAULTS, CatalogueError, Named, read
from selftest.images import ImageTrouble, open_images
from selftest.row import FAMILIES, FalseAlarms, Row, Sensitivity
from selftest.scene import StationName
from selftest.side_process import Beside, BesideError

SEED = 7
# Short and long: folded clean runs, whole clean runs, kills and full disks.
CLEAN = (1000, 10_000)
WHOLE = (6, 20)
# Sound years of nights, and machines for each fault that begins on one of them.
YEARS = ((2, 2), (20, 10))
# What is no fault of the catalogue, and is chosen by the same word.
APART = ("interruption", tampering.FAMILY, "clean")
POINTS = ((20, 5), (200, 50))
CHANGED = (
    "rigproof's own files were changed while the self-test ran: what it shows is of no one "
    "build; run it again"
)
RECORDINGS = Path(__file__).resolve().parents[1] / "fixtures/recordings"
ACCEPTANCE = Path(__file__).resolve().parents[1] / "acceptance"


class NotHere(Exception):
    """Nothing can be proved on this machine as it is; the message is one sentence with the cure."""


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="selftest", description="Show what rigproof catches, and how little it takes."
    )
    parser.add_argument(
        "--out", type=Path, default=Path("reports"), help="where its folder and its record go"
    )
    parser.add_argument(
        "--faults", type=Path, default=FAULTS, help="the catalogue (default: fixtures/faults)"
    )
    parser.add_argument(
        "--only", default="", help="families or faults that hold this word, and nothing else"
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="everything: every fault, more kills and full disks, more clean runs",
    )
    parser.add_argument(
        "--clean",
        type=_count,
        default=0,
        help="clean journals that are folded (default 1000, long 10,000)",
    )
    parser.add_argument(
        "--jobs", type=_count, default=2 * (os.cpu_count() or 1), help="faults played side by side"
    )
    return parser


def chosen(faults: Sequence[Named], only: str, *, long: bool) -> tuple[Named, ...]:
    """The faults that are to be played."""
    found = (one for one in faults if only in f"{one.family}/{one.name}")
    return tuple(one for one in found if long or not one.fault.long)


def ready(*, engine_needed: bool) -> None:
    """Raises NotHere where this machine lacks anything that faults are played with."""
    if os.geteuid() != 0:
        raise NotHere(
            "the self-test lays faulty files over this machine's in a mount namespace, as "
            "root: run `sudo make selftest`"
        )
    if lacking := "; ".join(programs.missing(engine_needed=engine_needed)):
        raise NotHere(f"the self-test cannot be played here: {lacking}")


def in_containers(only: str, faults: Sequence[Named]) -> bool:
    """Whether any of it is: attacks, interruptions and clean runs are, and some faults."""
    return only in ("", *APART) or any(one.fault.station == "docker" for one in faults)


def main(argv: Sequence[str] | None = None) -> int:
    """The program; see the module for its exit status."""
    given = arguments().parse_args(argv)
    try:
        faults = chosen(read(given.faults), given.only, long=given.long)
        ready(engine_needed=in_containers(given.only, faults))
        say(f"it needs {', '.join(programs.NEEDED)}: all are here")
        if not faults and given.only not in ("", *APART):
            raise NotHere(f"no family and no fault holds {given.only!r}: see fixtures/faults")
        with _alone(given.out):
            return _run(given, faults)
    except (
        lock.MachineBusy,
        UserError,
        CatalogueError,
        NotHere,
        SetupError,
        ImageTrouble,
        BesideError,
    ) as error:
        sys.stderr.write(f"selftest: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("selftest: stopped by SIGINT: nothing is proved\n")
        return 2


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """The machine for itself: what is played here has a lock of its own, and would spoil a real
    run.

    Raises Busy and UserError.
    """
    with lock.MachineLock() as held:
        before = held.last_run()
        held.claim(out.resolve() / "selftest")
        try:
            yield
        finally:
            if before is not None:  # it may still be unfinished, and the next start looks at it
                held.claim(before)


def _run(given: argparse.Namespace, faults: Sequence[Named]) -> int:
    began, utc = time.monotonic(), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    # Hundreds of starts would each do it where Python is told to keep nothing.
    compileall.compile_dir(ACCEPTANCE, quiet=2)
    drawn = None
    if not given.only:
        say("folding clean and faulty journals, beside the faults")
        drawn = Beside(
            "the folding of clean and faulty journals",
            lambda: _drawn(given.clean or CLEAN[given.long], YEARS[given.long]),
        )
    folder = (given.out / "selftest" / utc.replace(":", "-")).resolve()
    folder.mkdir(parents=True)
    digest = provenance.package_digest()
    with tempfile.TemporaryDirectory(prefix="rigproof-selftest-") as kept, ExitStack() as stack:
        library = fake_driver.build(Path(kept) / "library")
        images = None
        if in_containers(given.only, faults):
            built = build.build(log_dir=folder, say=say, deadline=Deadline.after(3000.0))
            client = docker.from_env()
            stack.callback(client.close)
            images = stack.enter_context(open_images(client, built.tag, Path(kept), RECORDINGS))
        theatre = Theatre(
            folder,
            library,
            (str(Path(sys.executable).with_name("rigproof")),),
            images,
            compared=given.faults == FAULTS,
        )
        try:
            rows, alarms = _prove(given, theatre, faults)
        except KeyboardInterrupt:
            theatre.over = True
            raise
        finally:
            (folder / "said.json").write_text(json.dumps(theatre.said), encoding="utf-8")
    if drawn is not None:
        say("waiting for the folding of clean and faulty journals")
    folded, told = drawn.result() if drawn is not None else ((), ())
    alarms = (*alarms, *folded)
    part = given.only or (
        f"of {given.faults}"
        if given.faults != FAULTS
        else f"{given.clean} clean"
        if given.clean
        else ""
    )
    kind = f"only {part}" if part else "long" if given.long else "short"
    place = {one: number for number, one in enumerate(FAMILIES)}
    ordered = tuple(sorted(rows, key=lambda row: (place[row.family], row.fault)))
    troubles = () if provenance.package_digest() == digest else (CHANGED,)
    outcome = results.Outcome(
        utc, digest[:12], kind, time.monotonic() - began, ordered, alarms, told, troubles
    )
    return close(outcome, folder, given.out, digest)


def _drawn(
    clean_runs: int, years: tuple[int, int]
) -> tuple[tuple[FalseAlarms, ...], tuple[Sensitivity, ...]]:
    """The false alarms in so many clean journals and years, and the smallest faults caught, by
    one run and by nights.
    """
    alarms, found = year.rows(*years, SEED)
    return (*false_alarms(clean_runs, SEED), *alarms), (*sensitivity.sensitivity(), *found)


def _prove(
    given: argparse.Namespace, theatre: Theatre, faults: Sequence[Named]
) -> tuple[list[Row], tuple[FalseAlarms, ...]]:
    """The catalogue, and beside it each corner of interruptions; then, unless a part was chosen,
    the clean runs.
    """
    corners = _interruptions(given.long, theatre) if given.only in ("", "interruption") else []
    if given.only in ("", tampering.FAMILY):
        corners.append(partial(_tampered, theatre))
    with ThreadPoolExecutor(1 + len(corners)) as beside:
        playing = [beside.submit(lambda: list(theatre.play_all(faults, given.jobs, say)))]
        playing += [beside.submit(one) for one in corners]
        try:
            rows = [row for one in playing for row in one.result()]
        except KeyboardInterrupt:
            theatre.over = True
            raise
    if given.only not in ("", "clean"):
        return rows, ()
    return rows, (clean.play(theatre, WHOLE[given.long], given.jobs, say),)


def _interruptions(long: bool, theatre: Theatre) -> list[Callable[[], list[Row]]]:
    """Kills and full disks at random moments: what plays them, each in a corner of its own, so
    that none waits for another.
    """
    kills, full = POINTS[long]
    stations: tuple[tuple[StationName, int], ...] = (
        ("host", kills - kills // 3),
        ("docker", kills // 3),
    )

    def killed(station: StationName, points: int) -> list[Row]:
        rig = _rig(theatre.home, f"interruption-{station}")
        rows = interruption.kills(
            rig, points, SEED, station=station, say=say, library=theatre.library
        )
        return list(_said(theatre, rig, rows))

    def filled() -> list[Row]:
        rig = _rig(theatre.home, "interruption-disk")
        rows = disk.full_disks(rig, full, SEED, station="host", say=say, library=theatre.library)
        return list(_said(theatre, rig, rows))

    return [*(partial(killed, station, points) for station, points in stations), filled]


def _tampered(theatre: Theatre) -> list[Row]:
    """Every attack on evidence; a row that says so where the runs for it could not be made."""
    try:
        return list(tampering.attacks(theatre, say))
    except TROUBLE as error:
        wrong = f"it could not be tried: {error}"[:400]
        return [Row(tampering.FAMILY, "evidence as a whole", "files of a run", False, wrong=wrong)]


def _rig(home: Path, name: str) -> Rig:
    (home / name).mkdir()
    return Rig(home / name)


def _said(theatre: Theatre, rig: Rig, rows: Generator[Row, None, None]) -> Iterator[Row]:
    """The same rows, with their journals as seen from the self-test's folder;
    none any more once it is over.
    """
    try:
        for row in rows:
            if theatre.over:
                raise Stopped("the self-test was stopped")
            say(
                f"{row.family}: {row.fault}: "
                f"{row.message if row.caught else f'MISSED: {row.wrong}'}"
            )
            yield replace(row, journal=f"{rig.home.name}/{row.journal}") if row.journal else row
    except TROUBLE as error:
        yield Row(
            "interruption",
            f"{rig.home.name} as a whole",
            "process",
            False,
            wrong=f"it could not be played: {error}"[:400],
        )
    finally:
        rows.close()
        sweep(rig.home)


def say(line: str) -> None:
    """What happens now, in a line."""
    print(line, flush=True)


def close(outcome: results.Outcome, folder: Path, out: Path, digest: str) -> int:
    """Write and show what was found; the exit status."""
    results.write(outcome, folder, package_digest=digest, machine_id=clock.machine_id())
    if not outcome.kind.startswith("only"):  # a part proves nothing of the whole
        record = out / "selftest.json"
        record.with_suffix(".part").write_bytes((folder / "selftest.json").read_bytes())
        record.with_suffix(".part").replace(record)
    console = Console(highlight=False)
    results.show(outcome, console)
    console.print(
        f"\n{outcome.closing_line()}\npage, JUnit and runs:\n{folder}", markup=False, soft_wrap=True
    )
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
