"""Feeds a run's view: the records of the sessions, and those of the watch.

A view is for people and decides nothing. A view that fails receives nothing more, and an unreadable
segment of the watch is not read again: the fold reads the same segments later, strictly.

Plays a finished run: its records in their order, at the moments at which they came, faster.

It reads journal and telemetry alone and writes nothing.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from acceptance.core.evidence import Sample
from acceptance.core.message import Message, english
from acceptance.core.parts import Component
from acceptance.core.record import Entry, Event, ForeignProcess
from acceptance.expect.sensor_range import THROUGHPUT
from acceptance.journal import reader, segment
from acceptance.journal.run import Run
from acceptance.journal.segment import JournalError

View = Callable[[Entry], None]

PERIOD_S = 1.0
# Bytes read from the end of a segment of samples: more than one sample of sixteen GPUs with all
# their counters.
TAIL_BYTES = 64 << 10


class LiveFeed:
    """Passes records to a view.

    `events` are the watch's segments of events; `failure` is why the view receives nothing more.
    """

    def __init__(
        self,
        run_dir: Path,
        view: View,
        events: Sequence[str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failure: Message | None = None
        self._view = view
        self._now_s = now_s
        self._due_s = now_s() + PERIOD_S
        self._tails = [reader.Tail(run_dir / name) for name in events]
        self._samples = [run_dir / name for name in (reader.TELEMETRY, reader.GPU_TELEMETRY)]
        self._seen: dict[tuple[str, Component | None], int] = {}

    def show(self, entry: Entry) -> None:
        """Pass one record to the view. Never raises: a failing view does not end a run."""
        if self.failure is None:
            try:
                self._view(entry)
            except Exception as error:  # noqa: BLE001 - whatever a view does, the run goes on
                why = f"{type(error).__name__}: {error}"
                self.failure = Message(
                    english("view_failed", "the view of the run failed ({why})"), {"why": why}
                )

    def poll(self, *, last: bool = False) -> None:
        """Pass on the watch's new records, at most once a second.

        Of samples only each component's newest, and those that hold what few do. Never raises.
        """
        now_s = self._now_s()
        if self.failure is not None or (now_s < self._due_s and not last):
            return
        self._due_s = now_s + PERIOD_S
        for tail in list(self._tails):
            try:
                for entry in tail.each():
                    if isinstance(entry.body, Event | ForeignProcess):
                        self.show(entry)
            except segment.JournalError:
                self._tails.remove(tail)
        for path in list(self._samples):
            try:
                self._newest(path)
            except segment.JournalError:
                self._samples.remove(path)

    def _newest(self, path: Path) -> None:
        samples = [
            (entry, entry.body)
            for entry in reader.read_last_entries(path, TAIL_BYTES)
            if isinstance(entry.body, Sample)
        ]
        newest = {body.component: entry.seq for entry, body in samples}
        for entry, body in samples:
            seen = self._seen.get((path.name, body.component), -1)
            rare = any(name in body.values for name in THROUGHPUT)
            if entry.seq > seen and (rare or entry.seq == newest[body.component]):
                self._seen[path.name, body.component] = entry.seq
                self.show(entry)


USUAL_S = 60.0  # how long a run is played


def usual_speed(run_s: float) -> float:
    """How many times faster than it ran a run is played, to take about a minute; at least 1."""
    return max(1.0, run_s / USUAL_S)


class RunClock:
    """The time within a run that is played, in seconds since it began.

    A `speed` of None plays it at once. `now_s` and `sleep` are the machine's.
    """

    def __init__(
        self,
        speed: float | None,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed, self._now_s, self._sleep = speed, now_s, sleep
        self._reached_s, self._began_s = 0.0, now_s()

    def now_s(self) -> float:
        """The moment that is played."""
        return (
            self._reached_s
            if self._speed is None
            else (self._now_s() - self._began_s) * self._speed
        )

    def wait_until(self, moment_s: float) -> None:
        """Wait for a moment of the run."""
        self._reached_s = moment_s
        if self._speed is not None and (ahead_s := moment_s - self.now_s()) > 0.0:
            self._sleep(ahead_s / self._speed)


class Playback:
    """A run that is played. `troubles` say which telemetry could not be read to its end."""

    def __init__(self, run: Run) -> None:
        self.troubles: list[Message] = []
        self._run = run

    def entries(self) -> Iterator[tuple[float, Entry]]:
        """Every record with its moment in seconds since the run began, in order of time.

        What a later start wrote, after hours or another boot, comes at the end of the run.
        """
        first = self._run.first
        own = [entry for entry in self._run.entries if entry.boot == first.boot]
        later = [entry for entry in self._run.entries if entry.boot != first.boot]
        samples = (
            self._samples(self._run.folder / name)
            for name in (reader.TELEMETRY, reader.GPU_TELEMETRY)
        )
        moment_s = 0.0
        for entry in heapq.merge(own, *samples, key=lambda one: one.boot_s):
            moment_s = min(max(moment_s, entry.boot_s - first.boot_s), self._run.seconds)
            yield moment_s, entry
        yield from ((moment_s, entry) for entry in later)

    def _samples(self, path: Path) -> Iterator[Entry]:
        """The samples of a segment, as far as they can be read."""
        try:
            yield from (one for one in reader.Tail(path).each() if isinstance(one.body, Sample))
        except JournalError as error:
            self.troubles.append(error.message)


def play(
    entries: Iterator[tuple[float, Entry]],
    clock: RunClock,
    views: Sequence[Callable[[Entry], None]],
    ended: Callable[[], bool],
) -> None:
    """Show each record at its moment, until `ended`: nobody sees it any more."""
    for moment_s, entry in entries:
        if ended():
            return
        clock.wait_until(moment_s)
        for view in views:
            view(entry)
