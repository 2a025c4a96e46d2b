"""Events of the machine: to which check each belongs, and the findings from them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from acceptance.core import plain_text
from acceptance.core.finding import Finding
from acceptance.core.load_xid import Grade, moment_s, works_on
from acceptance.core.message import Listed, Message, Quantity, Values, english, known, translatable
from acceptance.core.plan import GPU_LOAD, HOST_LOAD, Plan, Session
from acceptance.core.record import HARMFUL, Entry, Event
from acceptance.core.spans import CheckSpans

# What a GPU, its driver and a load on it report.
_OF_GPUS = frozenset({"xid", "sxid", "gpu-lost", "gpu-hang", "rm-init", "driver", "miscompare"})
# A message of the kernel that no table has.
UNKNOWN = "unknown"
_QUOTED = 300
# What processors and RAM report: machine checks, EDAC, failed pages; and what the firmware reports
# of them (`apei`), unless it names a PCI function.
_OF_HOST = frozenset({"mce", "edac", "memory-failure"})
# Journals until 2026-11-29 do not name the counts of a wrong result: these are by its code.
_OF_BURN = ("f64", "f32", "tf32", "f16", "bf16", "f8", "i8", "copy", "peer")
_OLDER_COUNTS = {one: f"burn_{one}_miscompares" for one in _OF_BURN}
_OLDER_COUNTS |= {one: f"{one}_miscompares" for one in ("elementwise", "vram")}


@dataclass(frozen=True, slots=True)
class OwnedEvent:
    """An event of a check.

    `beside` names every check that it belongs to, where several ran side by side and it names no
    part that one of them loads. `grade` is what an Xid is worth that a good load never causes.
    `after_s` is how many seconds after the start of its check it came.
    """

    event: Event
    beside: tuple[str, ...] = ()
    grade: Grade | None = None
    after_s: float | None = None


def loaded_side(event: Event, plan: Plan) -> Session | None:
    """The session that loads the part that an event names; None where it names none of those.

    A PCIe error is told by its device: a GPU, or a bridge above one.
    """
    part = event.component
    if event.kind in _OF_GPUS or part in plan.gpus or part in plan.gpu_functions:
        return GPU_LOAD
    firmware = event.kind == "apei" and part is None
    processor = part is not None and part.matches("cpu*")
    return HOST_LOAD if event.kind in _OF_HOST or firmware or processor else None


def owners(event: Event, running: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """The checks to which an event belongs, of those that were running at its moment.

    One alone owns it. Of two side by side, the one that loads the part that the event names; both
    where it names none. A check that loads only processors and RAM never owns what a GPU reports
    while the same phase loads the GPUs: without a running check of those it is the run's.
    """
    sessions = {check.id: check.session for check in plan.checks}
    side = loaded_side(event, plan)
    own = tuple(one for one in running if sessions.get(one) == side)
    if own:
        return own
    return (
        tuple(one for one in running if sessions.get(one) != HOST_LOAD)
        if side == GPU_LOAD and GPU_LOAD in sessions.values()
        else tuple(running)
    )


def owners_of(entry: Entry, event: Event, spans: CheckSpans, plan: Plan) -> tuple[str, ...] | None:
    """The checks to which an event belongs, in the order of the plan; () for one of the run.

    What a load reports belongs to the check whose session journalled it. A message that nobody
    knows belongs to the checks whose loads work on the part that it names: None where none does,
    and it decides nothing.
    """
    at_s = moment_s(entry, event)
    if event.source == "load" and (own := spans.of(entry, at_s)) is not None:
        return (own,)
    found = owners(event, spans.at(entry.boot, at_s), plan)
    named = tuple(check for check in plan.checks if check.id in found)
    if event.kind == UNKNOWN and event.component is not None:
        part = event.component
        named = tuple(check for check in named if works_on(check, part, plan))
        return tuple(check.id for check in named) or None
    return tuple(check.id for check in named)


def _counts(finding: Finding, event: Event) -> bool:
    """Whether a finding counts the wrong results of which the load reported the first."""
    part, own = finding.component, event.component
    if event.source != "load" or finding.kind != "fail" or part is None or own is None:
        return False
    names = event.counts or (_OLDER_COUNTS.get(str(event.code), ""),)
    return finding.measurement in names and (part == own or part.holds(own))


def with_first(judged: Sequence[Finding], events: Sequence[OwnedEvent]) -> list[Finding]:
    """The findings of measurements; those of wrong results with the first one of a load."""
    return [_with_first(finding, events) for finding in judged]


def _with_first(finding: Finding, events: Sequence[OwnedEvent]) -> Finding:
    first = next((one for one in events if _counts(finding, one.event)), None)
    if first is None:
        return finding
    after = None if first.after_s is None else Quantity(first.after_s, "s")
    about = known(after=after, meaning=translatable(first.event.meaning))
    told = Message(
        english(
            "first_wrong_result",
            "the first wrong result[, {after} after the check began]: {meaning}",
        ),
        about,
    )
    return replace(finding, values={**finding.values, "first": told})


def event_findings(
    events: Sequence[OwnedEvent], check: str, judged: Sequence[Finding] = ()
) -> list[Finding]:
    """The findings from the events of a check, or of the run; what came again is one of them.

    `judged` are the findings of its measurements. An event of a load that its check counts as
    miscompares is left out: the count says how often it happened.
    """
    found = []
    for owned in events:
        event = owned.event
        if any(_counts(finding, event) for finding in judged):
            continue
        if owned.grade is not None:
            found.append(_finding(owned.grade, check, owned))
        elif event.severity in HARMFUL:
            kind: Literal["fail", "error"] = "fail" if event.hardware else "error"
            found.append(_finding(kind, check, owned))
        elif event.severity == "warning":
            found.append(_finding("warn", check, owned))
    return _each_once(found)


def _each_once(found: Sequence[Finding]) -> list[Finding]:
    """The first of the findings that differ in the kernel's line alone, and how many they are."""
    alike: dict[str, list[Finding]] = {}
    for one in found:
        alike.setdefault(repr(replace(one, quote=None)), []).append(one)
    return [
        replace(one[0], values={**one[0].values, "times": len(one)}) if len(one) > 1 else one[0]
        for one in alike.values()
    ]


def _finding(kind: Literal["fail", "error", "warn"], check: str, owned: OwnedEvent) -> Finding:
    event = owned.event
    if owned.grade is not None:
        code = (
            english(
                "xid_again_in_loads",
                "{event} on {component}[, {times} times][ (ran side by side: {beside})], in more "
                "than one load of rigproof's own and on no equal GPU: {meaning} The card",
            )
            if owned.grade == "fail"
            else english(
                "xid_in_load",
                "{event} on {component}[, {times} times][ (ran side by side: {beside})] during a "
                "load of rigproof's own, which no good GPU and driver show: {meaning} Software or "
                "card",
            )
        )
    elif event.kind == UNKNOWN and event.component:
        code = english(
            "unknown_line_under_load",
            "the kernel logged an error of {component}[, {times} times][ (ran side by side: "
            '{beside})] under load that rigproof does not know: "{text}"',
        )
    else:
        code = (
            english(
                "event_on",
                "{event} on {component}[, {times} times][ (ran side by side: {beside})]: {meaning}",
            )
            if event.component
            else english(
                "event", "{event}[, {times} times][ (ran side by side: {beside})]: {meaning}"
            )
        )
    names = [event.kind, *([] if event.code is None else [str(event.code)])]
    values: Values = known(
        event=" ".join(names),
        meaning=translatable(event.meaning),
        beside=Listed(owned.beside) if owned.beside else None,
        text=plain_text.quote(event.text, _QUOTED) if event.kind == UNKNOWN else None,
    )
    return Finding(
        kind,
        check,
        code,
        values,
        component=event.component,
        action=(event.action, *event.catalog) if event.action else (),
        quote=event.text,
        event=".".join(names),
    )
