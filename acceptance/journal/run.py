"""A recorded run: its journal read once and folded once, for every view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from acceptance.baseline import changes, facts
from acceptance.core.fold import fold
from acceptance.core.incident import without_duplicates
from acceptance.core.message import Message, english
from acceptance.core.notes import run_notes
from acceptance.core.parts import Component, parse
from acceptance.core.plan import Plan
from acceptance.core.record import Entry, Event, RunStarted, records
from acceptance.core.spans import run_seconds
from acceptance.core.verdict import BaselineChanges, Verdict
from acceptance.journal import duplicates, reader, seal
from acceptance.journal.reader import Journal
from acceptance.journal.seal import Seal
from acceptance.journal.segment import JournalError
from acceptance.machine import observation, topology
from acceptance.machine.inventory import Inventory

if TYPE_CHECKING:
    from acceptance.journal.samples import TimedSample


class UnreadableRun(JournalError):
    """The journal holds no one plan to judge against."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run's records and its verdict.

    `entries` and `torn` are the journal's, and `seal` says what they are worth. `troubles` say why
    the evidence is not whole; such a run's values may be anybody's. `changes` are those since the
    baseline in its plan. `first` is the entry of the run's beginning, `start` its record.
    `inventory` is the machine before the run, with everything absent where the journal has none,
    and `matrix` how its GPUs and network cards reach each other, as rows of cells. `seconds` is the
    run's duration by its journal.

    `samples` reads the GPUs' samples in order, one by one: they are long, and only a chart needs
    them. It raises JournalError at the first one that cannot be read.
    """

    folder: Path
    entries: tuple[Entry, ...]
    torn: tuple[Message, ...]
    verdict: Verdict
    seal: Seal
    troubles: tuple[Message, ...]
    changes: BaselineChanges
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

    @property
    def notes(self) -> tuple[Message, ...]:
        """What the run notes for its reader; nothing where it was postponed or given up."""
        return () if self.verdict.postponed else run_notes(self.entries)

    def with_plan(self, plan: Plan) -> Run:
        """The same run, judged against another plan."""
        start = msgspec.structs.replace(self.start, plan=plan)
        first = msgspec.structs.replace(self.first, body=start)
        entries = tuple(first if entry is self.first else entry for entry in self.entries)
        return _run(self.folder, entries, self.torn, self.seal)


def read(folder: Path) -> Run:
    """Read a run's journal, hold its evidence against its seal, and judge it.

    Raises JournalError as `reader.read` does, and UnreadableRun as `of_journal` does.
    """
    return of_journal(reader.read(folder))


def of_journal(journal: Journal) -> Run:
    """The run of a journal that was read, its seal included.

    Raises UnreadableRun where it has not one beginning, and JournalError.
    """
    found = seal.look(journal)
    return _run(journal.run_dir, seal.own_entries(journal), journal.torn, found)


def of_live(journal: Journal) -> Run:
    """A run that goes on and is not sealed yet. Raises UnreadableRun as `of_journal` does."""
    return _run(journal.run_dir, journal.entries, journal.torn, Seal(troubles=journal.unread))


def judge(
    entries: Sequence[Entry],
    baseline: BaselineChanges,
    troubles: Sequence[Message],
    functions: Mapping[Component, Component],
) -> Verdict:
    """The verdict of a run: all findings, each event and each fault counted once.

    `baseline` is what differs from the baseline in the plan, `troubles` say why the evidence is
    not whole, and `functions` gives the GPU by its PCI function. The word follows from the
    findings.
    """
    verdict = fold(without_duplicates(entries), baseline, troubles)
    events = [event for _, event in records(entries, Event)]
    return duplicates.mark(verdict, events, functions)


def _run(folder: Path, entries: tuple[Entry, ...], torn: tuple[Message, ...], found: Seal) -> Run:
    starts = list(records(entries, RunStarted))
    if len(starts) != 1:
        raise UnreadableRun(
            english(
                "run_beginnings",
                "the journal holds {count} beginnings of a run, not one: nothing can be judged "
                "from it; run the test again",
            ),
            count=len(starts),
        )
    first, start = starts[0]
    seconds = run_seconds(entries)
    assert seconds is not None
    inventory = observation.inventory_of(entries)
    troubles = found.troubles
    if found.digest is not None:
        troubles += tuple(seal.other_parts(entries, facts.identities(inventory)))
    functions = {parse(one): part for one, part in topology.gpu_functions(inventory).items()}
    changed = changes.compare(start.plan.baseline, entries)
    return Run(
        folder=folder,
        entries=entries,
        torn=torn,
        verdict=judge(entries, changed, troubles, functions),
        seal=found,
        troubles=troubles,
        changes=changed,
        first=first,
        start=start,
        inventory=inventory,
        matrix=observation.matrix_of(entries),
        seconds=seconds,
        samples=partial(_samples, folder / reader.GPU_TELEMETRY),
    )


def _samples(path: Path) -> Iterator[TimedSample]:
    # Imported here, because only the page draws samples.
    from acceptance.journal.samples import read_samples

    return read_samples(path)
