"""A recorded run: its journal read once and folded once, for every view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from acceptance.core import duration
from acceptance.core.plan import Plan
from acceptance.core.record import Entry, RunStarted
from acceptance.core.verdict import Verdict
from acceptance.journal import reader
from acceptance.journal.reader import Journal
from acceptance.machine import changes, observation
from acceptance.machine.inventory import Inventory

if TYPE_CHECKING:
    from acceptance.journal.samples import TimedSample


@dataclass(frozen=True, slots=True)
class Run:
    """A run's records and its verdict.

    `entries` and `torn` are the journal's. `first` is the entry of the run's beginning, `start` its
    record. `inventory` is the machine before the run, with everything absent where the journal has
    none, and `matrix` how its GPUs and network cards reach each other, as rows of cells. `seconds`
    is the run's duration by its journal.

    `samples` reads the GPUs' samples in order, one by one: they are long, and only a chart needs
    them. It raises JournalError at the first one that cannot be read.
    """

    folder: Path
    entries: tuple[Entry, ...]
    torn: tuple[str, ...]
    verdict: Verdict
    first: Entry
    start: RunStarted
    inventory: Inventory
    matrix: tuple[tuple[str, ...], ...]
    seconds: float
    samples: Callable[[], Iterator[TimedSample]]

    @property
    def plan(self) -> Plan:
        """The plan that the run was judged against."""
        return self.start.plan

    def with_plan(self, plan: Plan) -> Run:
        """The same run, judged against another plan."""
        start = msgspec.structs.replace(self.start, plan=plan)
        first = msgspec.structs.replace(self.first, body=start)
        entries = tuple(first if entry is self.first else entry for entry in self.entries)
        return _judged(self.folder, entries, self.torn)


def read(folder: Path) -> Run:
    """Read a run's journal, and judge it.

    Raises JournalError as `reader.read` does, and UnreadableRun as `judge` does.
    """
    return judge(reader.read(folder))


def judge(journal: Journal) -> Run:
    """Judge a journal that was read. Raises UnreadableRun where it has not one beginning."""
    return _judged(journal.run_dir, journal.entries, journal.torn)


def _judged(folder: Path, entries: tuple[Entry, ...], torn: tuple[str, ...]) -> Run:
    verdict = changes.judge(entries)
    first, seconds = duration.first_record(entries), duration.seconds(entries)
    # The fold has found the run's beginning.
    assert first is not None
    assert isinstance(first.body, RunStarted)
    assert seconds is not None
    return Run(
        folder=folder,
        entries=entries,
        torn=torn,
        verdict=verdict,
        first=first,
        start=first.body,
        inventory=observation.inventory_of(entries),
        matrix=observation.matrix_of(entries),
        seconds=seconds,
        samples=partial(_samples, folder / reader.GPU_TELEMETRY),
    )


def _samples(path: Path) -> Iterator[TimedSample]:
    # Imported here, because only the page draws samples.
    from acceptance.journal.samples import read_samples

    return read_samples(path)
