"""When a run and each of its checks ran, and which notes fall into that time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.message import Text
from acceptance.core.record import CheckEnded, CheckStarted, Entry, Note, RunClosed, RunStarted


def first_record(entries: Sequence[Entry]) -> Entry | None:
    """The first record of the run."""
    return next((entry for entry in entries if isinstance(entry.body, RunStarted)), None)


def run_seconds(entries: Sequence[Entry]) -> float | None:
    """How long the run took, in seconds; None without a first record.

    It ends with the last entry of the boot in which it began.
    """
    start = first_record(entries)
    if start is None:
        return None
    last = max(
        entry.boot_s
        for entry in entries
        if entry.boot == start.boot and not isinstance(entry.body, RunClosed)
    )
    return last - start.boot_s


class CheckSpans:
    """When each check ran, by the boot-time clock: (check, boot, start, end).

    The end is infinite for a check that did not end.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._open: dict[str, tuple[int, float]] = {}
        self.spans: list[tuple[str, int, float, float]] = []
        for entry in entries:
            if isinstance(entry.body, CheckStarted):
                self._open[entry.body.check] = (entry.boot, entry.boot_s)
            elif isinstance(entry.body, CheckEnded) and entry.body.check in self._open:
                boot, start = self._open.pop(entry.body.check)
                self.spans.append((entry.body.check, boot, start, entry.boot_s))
        self.spans += [
            (check, boot, start, float("inf")) for check, (boot, start) in self._open.items()
        ]

    def at(self, boot: int, moment: float) -> str | None:
        """The check that was running at this moment."""
        return next(
            (check for check, b, start, end in self.spans if b == boot and start <= moment <= end),
            None,
        )


def load_progress(entries: Sequence[Entry], spans: CheckSpans) -> dict[str | None, Text]:
    """The last progress note of each check's loads, by the check that was running."""
    return {
        spans.at(entry.boot, entry.boot_s): entry.body.text
        for entry in entries
        if isinstance(entry.body, Note) and entry.body.progress
    }
