"""The notes of a run, for its reader: they decide nothing. Pure.

Of a power load they hold the steps, as the journal has them: when each was under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from acceptance.core.event_finding import UNKNOWN, owners_of
from acceptance.core.evidence import ToolRan
from acceptance.core.foreign_process import GpuUse, uses
from acceptance.core.incident import without_duplicates
from acceptance.core.message import Message, Value, Values, english, known
from acceptance.core.plan import segment_of
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Note,
    RunStarted,
    SessionEnded,
    records,
)
from acceptance.core.spans import CheckSpans, first_record, load_progress


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step, from its announcement to its end, in seconds since that boot.

    The end is infinite where the journal stops before it. `ended` says that the load reported it;
    otherwise the load, its check or its session ended first. `segment` is that of its session: what
    another session journals meanwhile ends no step.
    """

    step: Value
    boot: int
    began_s: float
    ended_s: float = inf
    ended: bool = False
    segment: str = ""


def steps_by_check(entries: Sequence[Entry]) -> Iterator[tuple[StepSpan, ...]]:
    """The steps of each check that has some, in order."""
    found: list[StepSpan] = []
    for entry in entries:
        body = entry.body
        if found and not _is_of(found[-1], entry):
            continue
        note = body.text if isinstance(body, Note) and isinstance(body.text, Message) else None
        code = None if note is None else note.code
        # a program is journalled when all parts of its stage have ended
        if code in ("power_step_begins", "power_step_ended") or isinstance(
            body, CheckStarted | CheckEnded | SessionEnded | ToolRan
        ):
            if found and found[-1].ended_s == inf:
                ended = code == "power_step_ended"
                found[-1] = replace(found[-1], ended_s=entry.boot_s, ended=ended)
            if isinstance(body, CheckStarted | SessionEnded) and found:
                yield tuple(found)
                found = []
        if note is not None and code == "power_step_begins" and "step" in note.values:
            step = note.values["step"]
            found.append(StepSpan(step, entry.boot, entry.boot_s, segment=entry.segment))
    if found:
        yield tuple(found)


def _is_of(span: StepSpan, entry: Entry) -> bool:
    """Whether a record is of the session of this step, or ends it."""
    ended = entry.body.session if isinstance(entry.body, SessionEnded) else None
    return span.segment in (entry.segment, ended and segment_of(ended))


def event_notes(entries: Sequence[Entry]) -> Iterator[Message]:
    """For each event that came during a step, at which one."""
    spans = [span for steps in steps_by_check(entries) for span in steps]
    for entry, event in records(entries, Event):
        if event.severity == "info":
            continue
        moment = entry.boot_s if event.boot_s is None else event.boot_s
        for span in spans:
            if span.boot == entry.boot and span.began_s <= moment <= span.ended_s:
                name = event.kind if event.code is None else f"{event.kind} {event.code}"
                part = None if event.component is None else str(event.component)
                yield Message(
                    english(
                        "power_step_event", "{event}[ on {part}] came during a power step: {step}"
                    ),
                    known(event=name, part=part, step=span.step),
                )


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
            found.append(Message(english("note", "{text}"), {"text": note.text}))
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
    return tuple(
        Message(
            english(
                "unknown_line", "the kernel logged an error that rigproof does not know: {text}"
            ),
            {"text": text},
        )
        for text in texts
    )


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
        return Message(
            english(
                "gpu_used_to_end",
                "{gpu} was also used by {who} from second {since} of the run to its end",
            ),
            values,
        )
    return Message(
        english(
            "gpu_used",
            "{gpu} was also used by {who} from second {since} of the run to second {until}",
        ),
        {**values, "until": round(use.until_s - began_s)},
    )
