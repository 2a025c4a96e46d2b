"""What a run's view is shown: the sessions' records, and what the watch sees beside them.

A view is for people and decides nothing. One that fails is shown nothing more, and a segment of the
watch's that cannot be read is not looked at again: the fold reads the same segments later,
strictly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from acceptance.core.record import Entry, Event, ForeignProcess, Sample
from acceptance.journal import reader, segment

View = Callable[[Entry], None]

PERIOD_S = 1.0
# The end of a segment of samples that is looked at: a look at sixteen GPUs with all their counters,
# and more.
TAIL_BYTES = 64 << 10


class LiveFeed:
    """Shows a view what happens.

    `events` are the segments of the watch that tell of events; `failure` is why the view is shown
    no more.
    """

    def __init__(
        self,
        run_dir: Path,
        view: View,
        events: Sequence[str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failure: str | None = None
        self._view = view
        self._now_s = now_s
        self._due_s = now_s() + PERIOD_S
        self._tails = [reader.Tail(run_dir / name) for name in events]
        self._samples = [run_dir / name for name in (reader.TELEMETRY, reader.GPU_TELEMETRY)]
        self._seen: dict[tuple[str, str | None], int] = {}

    def show(self, entry: Entry) -> None:
        """Show one record. Never raises: a run does not end because nobody can be told of it."""
        if self.failure is None:
            try:
                self._view(entry)
            except Exception as error:  # noqa: BLE001 - whatever a view does, the run goes on
                self.failure = f"the view of the run failed ({type(error).__name__}: {error})"

    def poll(self, *, last: bool = False) -> None:
        """Show what the watch has seen since the last look, once a second at most; of samples each
        component's newest.

        Never raises.
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
        newest: dict[str | None, Entry] = {}
        for entry in reader.read_last_entries(path, TAIL_BYTES):
            if isinstance(entry.body, Sample):
                newest[entry.body.component] = entry
        for component, entry in newest.items():
            if self._seen.get((path.name, component)) != entry.seq:
                self._seen[path.name, component] = entry.seq
                self.show(entry)
