"""Plays a finished run: its records in their order, at the moments at which they came, faster.

It reads journal and telemetry alone and writes nothing.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from acceptance.core.evidence import Sample
from acceptance.core.message import Message
from acceptance.core.record import Entry
from acceptance.journal import reader
from acceptance.journal.run import Run
from acceptance.journal.segment import JournalError

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
        if self._speed is None:
            return self._reached_s
        return (self._now_s() - self._began_s) * self._speed

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
