"""The notes of a run, for its reader: they decide nothing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from acceptance.core.event_finding import UNKNOWN, owners_of
from acceptance.core.foreign_process import GpuUse, uses
from acceptance.core.incident import without_duplicates
from acceptance.core.message import Message, Values
from acceptance.core.power_steps import event_notes
from acceptance.core.record import Entry, Event, Note, RunStarted, records
from acceptance.core.spans import CheckSpans, first_record, load_progress


def run_notes(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The journal's own notes, events during power steps, uses by others, and unknown messages."""
    entries = without_duplicates(entries)
    return (*_own(entries), *event_notes(entries), *_uses(entries), *_unknown(entries))


def _own(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The notes of the journal; of a check's progress notes only the last."""
    spans = CheckSpans(entries)
    last = load_progress(entries, spans)
    found = []
    for entry, note in records(reversed(entries), Note):
        if note.trouble:
            continue
        if not note.progress or last.pop(spans.of(entry), None) is not None:
            found.append(Message("note", {"text": note.text}))
    return tuple(reversed(found))


def _unknown(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Messages that nobody knows, of parts that no load worked on at that moment."""
    first = first_record(entries)
    if first is None or not isinstance(first.body, RunStarted):
        return ()
    spans, plan = CheckSpans(entries), first.body.plan
    texts = dict.fromkeys(
        event.text
        for entry in entries
        if isinstance(event := entry.body, Event)
        and event.kind == UNKNOWN
        and owners_of(entry, event, spans, plan) is None
    )
    return tuple(Message("unknown_line", {"text": text}) for text in texts)


def _uses(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """Every foreign use of a GPU with its seconds in the run, whichever check it disturbed."""
    began = {entry.boot: entry.boot_s for entry in reversed(entries)}
    found: list[Message] = []
    for use in uses(entries):
        one = _use(use, began[use.boot])
        found += [one] if one not in found else []
    return tuple(found)


def _use(use: GpuUse, began_s: float) -> Message:
    since = round(max(0.0, use.since_s - began_s))
    values: Values = {"gpu": str(use.gpu), "who": use.who, "since": since}
    if use.until_s == inf:
        return Message("gpu_used_to_end", values)
    return Message("gpu_used", {**values, "until": round(use.until_s - began_s)})
