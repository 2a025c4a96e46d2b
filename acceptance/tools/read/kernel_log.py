"""Reads and judges the text of a whole kernel log, whatever program printed it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from acceptance.core.message import Message, Term, Text, Value, english, known
from acceptance.core.parts import MACHINE, Component
from acceptance.observe import unknown_line
from acceptance.observe.event import RANK, KernelEvent, weigh
from acceptance.observe.kernel_line import KernelLine, kernel_lines
from acceptance.observe.kernel_log import CUT, all_events_of, events_of, storms
from acceptance.observe.tested_parts import shown
from acceptance.process.unreadable import UnreadableOutput, require_bounded
from acceptance.tools.reading import Outcome, Reading, ToolOutput

TOOL = "kernel-log"


def events(text: str) -> tuple[KernelEvent, ...]:
    """The events in the text of a log.

    Reads dmesg (any time format), raw kmsg, journalctl, syslog, a console capture, or pasted parts.
    """
    lines = kernel_lines(text)
    return _weighed(events_of(lines), lines)


def _weighed(events: Sequence[KernelEvent], lines: Sequence[KernelLine]) -> tuple[KernelEvent, ...]:
    # A text knows no run: what it shows of GPUs and disks was the test.
    return weigh(events, shown(lines), in_run=False)


def _told(event: KernelEvent) -> dict[str, Value]:
    """The event and where it was, and its meaning."""
    code = f" {event.code}" if event.code is not None else ""
    where = None if event.component is None else str(event.component)
    return known(event=f"{event.kind}{code}", where=where, meaning=Term(event.meaning))


def conclude(events: Sequence[KernelEvent]) -> tuple[Outcome, Text]:
    """Outcome and reason for the events of a whole log.

    *fail*: a fatal or error event that proves a fault, or a storm of corrected errors. *error*:
    messages were lost, or the kernel or the driver itself failed, which leaves the machine
    unjudged. *pass*: neither. The reason names the first of the most severe events.
    """
    # A driver that does not support a GPU cannot start it, so the failed start proves nothing
    # about that GPU.
    excused = {event.component for event in events if event.kind == "driver"}
    faults = [
        e
        for e in events
        if e.hardware
        and RANK[e.severity] >= RANK["error"]
        and not (e.kind == "rm-init" and excused & {e.component, None})
    ]
    if faults:
        first = max(faults, key=lambda event: RANK[event.severity])
        rest = known(advice=Term(first.advice), more=len(faults) - 1 or None)
        return "fail", Message(
            english("fault_logged", "{event}[ on {where}]: {meaning} {advice}[, and {more} more]"),
            {**_told(first), **rest},
        )
    if stormy := storms(events):
        return "fail", stormy[0]
    unjudged = [
        e
        for e in events
        if e.kind == "lost" or (not e.hardware and RANK[e.severity] >= RANK["error"])
    ]
    if unjudged:
        return "error", Message(
            english(
                "unjudged_logged",
                "{event}[ on {where}]: {meaning} It proves no fault of the hardware, and no "
                "health either.",
            ),
            _told(unjudged[0]),
        )
    warnings = [event for event in events if event.severity == "warning"]
    if warnings:
        return "pass", Message(
            english(
                "warnings_logged",
                "no fault; {count} warnings, the first: {event}[ on {where}]: {meaning}",
            ),
            {"count": len(warnings), **_told(warnings[0])},
        )
    return "pass", Message(english("no_fault_logged", "no fault"))


def _readings(events: Sequence[KernelEvent]) -> tuple[Reading, ...]:
    """Errors counted by EDAC for each module, and events by severity for the machine.

    A severity without events is 0, because the whole log was read.
    """
    found = []
    for code, name in (("CE", "edac_corrected"), ("UE", "edac_uncorrected")):
        counts: dict[Component, float] = defaultdict(float)
        for event in events:
            if event.kind == "edac" and event.code == code:
                counts[event.component or MACHINE] += event.count
        if counts:
            found.append(Reading(name, "count", dict(counts)))
    for severity in ("fatal", "error", "warning"):
        total = sum((1.0 for event in events if event.severity == severity), 0.0)
        found.append(Reading(f"kernel_{severity}", "count", {MACHINE: total}))
    return tuple(found)


def parse(text: str) -> ToolOutput:
    """Judge the text of a kernel log (`rigproof read kernel-log`).

    Readings: `kernel_fatal`, `kernel_error`, `kernel_warning` (count, component `machine`);
    `edac_corrected` and `edac_uncorrected` (count, by module) if EDAC reported errors. Raises
    UnreadableOutput for an empty text and for a text that is no kernel log: neither shows that
    nothing happened.
    """
    require_bounded(text)
    lines = kernel_lines(text)
    if not lines:
        raise UnreadableOutput(TOOL, "", Message(english("text_empty", "the text is empty")))
    found = _weighed(all_events_of(lines), lines)
    unknown = sum(event.kind == unknown_line.KIND for event in found)
    known_kind = any(event.code != CUT and event.kind != unknown_line.KIND for event in found)
    if not known_kind and not any(line.stamped for line in lines):
        raise UnreadableOutput(
            TOOL, lines[0].text, Message(english("no_kernel_log", "this is no kernel log"))
        )
    outcome, reason = conclude(found)
    if unknown:
        reason = Message(
            english(
                "besides_unknown_lines",
                "{reason}; {count} lines of the hardware that rigproof does not know (events of "
                "kind unknown)",
            ),
            {"reason": reason, "count": unknown},
        )
    return ToolOutput(
        TOOL, outcome, reason, _readings(found), tuple(event.to_json_object() for event in found)
    )
