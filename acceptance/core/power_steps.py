"""The steps of a power load as a journal has them: when each was under way. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from acceptance.core.collection import segment_of
from acceptance.core.evidence import ToolRan
from acceptance.core.message import Message, Value, known
from acceptance.core.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Note,
    SessionEnded,
    records,
)


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
                yield Message("power_step_event", known(event=name, part=part, step=span.step))
