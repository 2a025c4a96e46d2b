"""When each check ran, and which notes fall into that time."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.record import CheckEnded, CheckStarted, Entry, Note


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


def load_progress(entries: Sequence[Entry], spans: CheckSpans) -> dict[str | None, str]:
    """The last progress note of each check's loads, by the check that was running."""
    return {
        spans.at(entry.boot, entry.boot_s): entry.body.text
        for entry in entries
        if isinstance(entry.body, Note) and entry.body.progress
    }


def run_notes(entries: Sequence[Entry], spans: CheckSpans) -> tuple[str, ...]:
    """The notes that decide nothing; of a check's progress notes only the last."""
    last = load_progress(entries, spans)
    found = []
    for entry in reversed(entries):
        if not isinstance(entry.body, Note) or entry.body.trouble:
            continue
        if (
            not entry.body.progress
            or last.pop(spans.at(entry.boot, entry.boot_s), None) is not None
        ):
            found.append(entry.body.text)
    return tuple(reversed(found))
