"""The catalogue played: every fault in a corner of its own, several side by side."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import SubprocessError

from docker.errors import DockerException
from run_left import Run
from statement import Statement

from acceptance.process.command import CommandError
from selftest import frozen, trial
from selftest.fault import Named
from selftest.images import Images, ImageTrouble
from selftest.row import Row
from selftest.stage import EndedBefore, Stage, StageError

Say = Callable[[str], None]


class Stopped(Exception):
    """Somebody ended the self-test before this fault was played."""


# What playing a fault may raise: each is a fault that was not caught, and none ends the self-test.
TROUBLE: tuple[type[Exception], ...] = (
    Stopped,
    StageError,
    ImageTrouble,
    DockerException,
    CommandError,
    AssertionError,
    SubprocessError,
    OSError,
    ValueError,
    KeyError,
)


@dataclass
class Theatre:
    """What every fault is played with.

    `library` is the folder of the fake NVML; `rigproof` how its command line begins.

    Once it is `over` nothing more is begun. What each run `said` is kept, and `compared` with what
    it said before.
    """

    home: Path
    library: Path
    rigproof: Sequence[str]
    images: Images | None
    compared: bool = True
    over: bool = False
    said: dict[str, Statement] = field(default_factory=dict)

    def _tried(self, named: Named) -> tuple[tuple[Row, ...], str]:
        """The rows of one play, and by what was measured that its run was starved.

        Whatever goes wrong with playing it is a fault that was not caught. Starved is a run whose
        moment had passed by its own journal when the fault was put in, or that missed its fault
        and whose load ran for less than its time: busy processors left it none. All else counts
        as it is.
        """
        began = time.monotonic()
        try:
            return self._played(named)
        except TROUBLE as error:
            told = (
                f"it could not be played: {type(error).__name__}: "
                f"{' '.join(str(error).split())[:400]}"
            )
            seconds = round(time.monotonic() - began, 1)
            row = Row(
                named.family, named.name, named.fault.seam, False, seconds=seconds, wrong=told
            )
            return (row,), str(error) if isinstance(error, EndedBefore) else ""

    def _played(self, named: Named) -> tuple[tuple[Row, ...], str]:
        with corner(self, named) as stage:
            run, boot_s = stage.play()
            rows = tuple(trial.rows(named, run, boot_s, self.home))
            changed = self.heard(named, run)
            rows = tuple(
                replace(row, caught=False, wrong=changed) if row.caught and changed else row
                for row in rows
            )
            return rows, "" if all(row.caught for row in rows) else trial.starved(run)

    def heard(self, named: Named, run: Run) -> str:
        """Keep what a run said; returns what of it is not as it was, where the
        shipped catalogue is played.
        """
        name = f"{named.family}/{named.name}"
        self.said[name] = frozen.said(named.fault, run)
        return frozen.difference(name, named.fault, self.said[name]) if self.compared else ""

    def play_all(self, faults: Sequence[Named], jobs: int, say: Say) -> Iterator[Row]:
        """Every fault, so many side by side, and again, one by one, those whose run was starved;
        rows come as they are known, each told with how many of the faults are done.
        """
        again, places = [], (f"{number} of {len(faults)}" for number in itertools.count(1))
        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(self._tried, one): one for one in longest_first(faults)}
            for done in as_completed(waiting):
                named, (rows, starved) = waiting[done], done.result()
                if starved:
                    again.append(named)
                    say(f"{named.family}: {named.name}: is played again: {starved}")
                else:
                    yield from _told(rows, next(places), say)
        for named in again:
            yield from _told(self._tried(named)[0], next(places), say)


def _told(rows: Sequence[Row], place: str, say: Say) -> Iterator[Row]:
    """The rows of a fault, each with a line on it."""
    for row in rows:
        word = f"{row.by} after {row.seconds:.1f} s" if row.caught else f"MISSED: {row.wrong}"
        say(f"{place}: {row.family}: {row.fault}: {word}")
        yield row


@contextlib.contextmanager
def corner(theatre: Theatre, named: Named) -> Iterator[Stage]:
    """A stage for as long as one fault is played on it; what is kept of it is its run."""
    if theatre.over:
        raise Stopped("the self-test was stopped")
    home = theatre.home / f"{named.family.replace(' ', '-')}-{named.name}"
    shutil.rmtree(home, ignore_errors=True)  # of a first try
    try:
        stage = Stage(home, named.fault, theatre.library, theatre.rigproof, theatre.images)
        try:
            yield stage
        finally:
            stage.clear()
    finally:
        sweep(home)


def longest_first(faults: Sequence[Named]) -> list[Named]:
    """In the order in which they are begun, so that none is left alone at the end."""
    return sorted(
        faults,
        key=lambda one: (
            -one.fault.burn
            - 30 * (one.fault.kill is not None or one.fault.reboot is not None)
            - one.fault.within_s
        ),
    )


def sweep(home: Path) -> None:
    """Remove what a fault was played with, and keep its run."""
    for name in ("root", "fakes", "work", "image", "scratch", "elsewhere"):
        if (home / name).is_dir() and not (home / name).is_symlink():
            shutil.rmtree(home / name, ignore_errors=True)
        else:  # what lies at a scratch may be anything
            (home / name).unlink(missing_ok=True)
    (home / "disk-is-gone").unlink(missing_ok=True)
