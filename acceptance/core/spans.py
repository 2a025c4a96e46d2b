"""When a run and each of its checks ran, and which notes fall into that time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from acceptance.core.message import Text
from acceptance.core.plan import segment_of
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Note,
    RunClosed,
    RunStarted,
    SessionEnded,
    records,
)


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


@dataclass(frozen=True, slots=True)
class CheckSpan:
    """When a check ran, in seconds since boot number `boot`.

    It ends at the latest with its session; the end is infinite where neither ended. `segment` is
    its session's: the checks of one segment ran one after the other.
    """

    check: str
    boot: int
    began_s: float
    ended_s: float
    segment: str = ""


class CheckSpans:
    """When each check ran, by the boot-time clock. Checks of two sessions may run side by side."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        began: dict[tuple[str, str], CheckSpan] = {}
        self.spans: list[CheckSpan] = []
        for entry in entries:
            body = entry.body
            if isinstance(body, CheckStarted):
                span = CheckSpan(body.check, entry.boot, entry.boot_s, inf, entry.segment)
                began[body.check, entry.segment] = span
            elif isinstance(body, CheckEnded) and (body.check, entry.segment) in began:
                span = began.pop((body.check, entry.segment))
                self.spans.append(replace(span, ended_s=entry.boot_s))
            elif isinstance(body, SessionEnded):  # it died in the check
                own = (entry.segment, segment_of(body.session))
                dead = [name for name in began if name[1] in own]
                self.spans += [replace(began.pop(name), ended_s=entry.boot_s) for name in dead]
        self.spans += began.values()

    def at(self, boot: int, moment_s: float) -> tuple[str, ...]:
        """The checks that were running at this moment, one of each session."""
        running = [span for span in self.spans if _runs(span, boot, moment_s)]
        first = {span.segment: span.check for span in reversed(running)}
        return tuple(first[segment] for segment in reversed(first))

    def of(self, entry: Entry, moment_s: float | None = None) -> str | None:
        """The check of a record that names none: the one that its own session was running.

        `moment_s` is the time that the record is of, where that is not when it was written.
        """
        moment_s = entry.boot_s if moment_s is None else moment_s
        running = (span for span in self.spans if _runs(span, entry.boot, moment_s))
        return next((span.check for span in running if span.segment == entry.segment), None)

    def seconds_into(self, check: str, boot: int, moment_s: float) -> float | None:
        """How many seconds after the start of a check a moment was; None where it was not then."""
        own = (span for span in self.spans if span.check == check and _runs(span, boot, moment_s))
        return next((moment_s - span.began_s for span in own), None)


def _runs(span: CheckSpan, boot: int, moment_s: float) -> bool:
    return span.boot == boot and span.began_s <= moment_s <= span.ended_s


def load_progress(entries: Sequence[Entry], spans: CheckSpans) -> dict[str | None, Text]:
    """The last progress note of each check's loads, by the check whose session wrote it."""
    return {spans.of(entry): note.text for entry, note in records(entries, Note) if note.progress}
