"""Feeds a run's view: the records of the sessions, and those of the watch.

A view is for people and decides nothing. A view that fails receives nothing more, and an unreadable
segment of the watch is not read again: the fold reads the same segments later, strictly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from acceptance.core.evidence import Sample
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.record import Entry, Event, ForeignProcess
from acceptance.expect.sensor_range import THROUGHPUT
from acceptance.journal import reader, segment

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
                self.failure = Message("view_failed", {"why": why})

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
