"""A machine's history from the command line: looked at, written out, pruned, and made anew."""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from acceptance import clock, fixtures, journal, lock, outputs
from acceptance.history import certificate, reading, rebuild, retention, telling, where
from acceptance.history.baseline_errors import BaselineUnsound
from acceptance.history.certificate import Baseline
from acceptance.history.store import Store
from acceptance.judge import noise
from acceptance.judge.course import Course
from acceptance.judge.language import ENGLISH, Language
from acceptance.judge.measurement import GIB
from acceptance.reports import chronicle_terminal, chronicle_words
from acceptance.reports.terminal import Terminal

_NEAR = 5  # names that are offered for one that is not there


class NoHistory(Exception):
    """There is nothing of what was asked for; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What of whose history: `measurement` and `component` by name or shell pattern, of the `last` so many nights (None: all there are).

    `machine_id` names another machine than this one.
    """

    out: Path
    machine_id: str | None = None
    measurement: str | None = None
    component: str | None = None
    last: int | None = None


class Histories:
    """The histories of one output folder, as this machine sees them."""

    def __init__(self, asked: Asked, screen: Terminal, language: Language = ENGLISH, root: Path = Path("/")) -> None:
        self._asked = asked
        self._screen = screen
        self._language = language
        self._root = root
        self._own = clock.machine_id(root)
        self._id = asked.machine_id or self._own

    def show(self, page: Path | None) -> None:
        """Print the nights, and write them as a page where one is asked for.

        Raises NoHistory, HistoryError, NoiseFileError, or JournalError for a page that cannot be written.
        """
        asked = self._asked
        baseline = self._baseline()
        with self._opened() as store:
            found = telling.told(
                store,
                asked.out,
                self._id,
                noise.read(fixtures.locate("noise.toml")),
                measurement=asked.measurement,
                component=asked.component,
                last=asked.last or telling.NIGHTS,
                born=_born(baseline),
                baseline=baseline.certificate.birth.run_id if baseline else None,
            )
            if not found.rows and (asked.measurement or asked.component):
                raise self._unknown(store)
        one = asked.measurement is not None
        chronicle_terminal.show(found, self._screen, self._language, one=one)
        if page is not None:
            from acceptance.reports.page import nights  # reading templates takes its time, and nobody else needs them

            content = nights.render(found, self._language).encode("utf-8")
            outputs.put(page, content, then="start again")
            self._screen.path(str(page))

    def export(self, form: str) -> None:
        """Write every value to standard output. Raises NoHistory or HistoryError, and OSError when nobody reads it."""
        asked = self._asked
        with self._opened(say=False) as store:
            for line in telling.exported(store, form, asked.measurement, asked.component, asked.last):
                sys.stdout.buffer.write(line)

    def rebuild(self) -> None:
        """Make the history anew. Raises NoHistory, HistoryError, Busy or LockError."""
        self._present()
        with self._alone():
            store, told = rebuild.anew(self._asked.out, self._id)
            store.close()
        for sentence in told:
            self._screen.say(sentence)

    def prune(self, keep_days: float | None, keep_gib: float | None) -> None:
        """Remove what is old, and say what was removed.

        Raises NoHistory, HistoryError, Busy or LockError, and BaselineUnsound: a baseline that nobody can read cannot be spared.
        """
        if keep_days is None and keep_gib is None:
            raise NoHistory("--prune needs --keep-days or --keep-gib, or both: say how much is to stay")
        with self._alone():
            baseline = certificate.read(self._asked.out, self._id)
            with self._opened() as store:
                found = retention.prune(
                    store,
                    self._asked.out,
                    self._id,
                    today=time.time() / 86400.0,
                    keep_days=keep_days,
                    keep_bytes=int(keep_gib * GIB) if keep_gib is not None else None,
                    never=[baseline.certificate.birth.run_id] if baseline else [],
                )
        for line in chronicle_words.pruned(found.folders, found.nights, found.left, self._language):
            self._screen.say(line)

    def _alone(self) -> AbstractContextManager[object]:
        """Nothing may write a run of this machine meanwhile. What another machine writes cannot be seen from here."""
        if self._id != self._own:
            raise NoHistory(f"the history of {self._id} is another machine's: start this on that machine")
        return lock.MachineLock(self._root)

    def _present(self) -> None:
        """Raise NoHistory where there is neither a history of the machine nor a run."""
        out = self._asked.out
        if where.database(out, self._id).is_file():
            return
        others = telling.others(out, self._id)
        if self._id != self._own or not any(out.glob(f"*/{journal.SUPERVISOR}")):
            there = f" (there is one of {', '.join(others)}: --machine-id shows it)" if others else ""
            raise NoHistory(f"{out}: holds no history of {self._id}{there}: give the folder of its runs with --out")

    def _opened(self, *, say: bool = True) -> Store:
        """The history: up to date with the runs where it is this machine's and can be written, else as it is."""
        self._present()
        path = where.database(self._asked.out, self._id)
        if self._id != self._own or not os.access(path.parent if path.exists() else self._asked.out, os.W_OK):
            return Store.view(path)
        store, told = rebuild.opened(self._asked.out, self._id)
        for sentence in told if say else ():
            self._screen.say(sentence, "yellow")
        return store

    def _baseline(self) -> Baseline | None:
        try:
            return certificate.read(self._asked.out, self._id)
        except BaselineUnsound as error:
            self._screen.say(f"{error}", "yellow")
            return None

    def _unknown(self, store: Store) -> NoHistory:
        known = {name for course in reading.courses(store) for name in (course.measurement, course.component)}
        asked = [name for name in (self._asked.measurement, self._asked.component) if name and name not in known]
        near = [name for one in asked for name in difflib.get_close_matches(one, known, _NEAR)]
        there = f" (there is {', '.join(near)})" if near else ""
        told = " on ".join(name for name in (self._asked.measurement, self._asked.component) if name)
        return NoHistory(f"no night has a value of {told}{there}: `rigproof history` lists all that there are")


def _born(baseline: Baseline | None) -> Callable[[Course], float | None]:
    """The baseline's value of a course, where it is of the same part."""
    figures = (
        {}
        if baseline is None
        else {(one.check, one.measurement, one.component, one.unit): one for one in baseline.certificate.figures}
    )

    def born(course: Course) -> float | None:
        one = figures.get((course.check, course.measurement, course.component, course.unit))
        if one is None or (one.serial and course.serial and one.serial != course.serial):
            return None
        return one.value

    return born
