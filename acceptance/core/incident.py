"""Events of the machine, each counted once even when two sources report it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

from acceptance.core.finding import Finding
from acceptance.core.record import HARMFUL, Entry, Event

# NVML reports an Xid at its listener's next poll, and a lost GPU after some seconds of silence. The
# kernel log is held back until a message is complete.
SAME_WITHIN_S = 10.0
_FALLEN_OFF = 79


def _incident(event: Event) -> Hashable:
    """What happened, and to which component.

    An Xid 79 is the loss of the GPU, whichever source reports it.
    """
    if event.kind == "gpu-lost" or (event.kind == "xid" and event.code == _FALLEN_OFF):
        return "gpu-lost", event.component
    return event.kind, event.code, event.component


def _moment(entry: Entry, event: Event) -> float:
    return event.boot_s if event.boot_s is not None else entry.boot_s


def without_duplicates(entries: Sequence[Entry]) -> list[Entry]:
    """The entries without NVML events that the kernel log reports too.

    Two events are the same when they are of one boot and at most ten seconds apart. The kernel
    log's event stays: it has the driver's own words, and its severity follows from them.
    """
    kernel: dict[Hashable, list[float]] = {}
    for entry in entries:
        if isinstance(event := entry.body, Event) and event.source != "nvml":
            kernel.setdefault((entry.boot, _incident(event)), []).append(_moment(entry, event))

    def told(entry: Entry) -> bool:
        if not isinstance(event := entry.body, Event) or event.source != "nvml":
            return False
        moments = kernel.get((entry.boot, _incident(event)), [])
        return any(abs(_moment(entry, event) - moment) <= SAME_WITHIN_S for moment in moments)

    return [entry for entry in entries if not told(entry)]


def _counts(finding: Finding, event: Event) -> bool:
    """Whether a finding counts the wrong results of which the load reported the first.

    `burn_bf16_miscompares` does so for an event with the code bf16.
    """
    name = f"_{finding.measurement}"
    same = (
        event.source == "load" and finding.kind == "fail" and finding.component == event.component
    )
    return same and name.endswith("_miscompares") and f"_{event.code}_" in name


def event_findings(
    events: Sequence[Event], check: str, judged: Sequence[Finding] = ()
) -> list[Finding]:
    """The findings from the events of a check, or of the run.

    `judged` are the findings of its measurements. An event of a load that its check counts as
    miscompares is left out: the count says how often it happened.
    """
    found = []
    for event in events:
        if any(_counts(finding, event) for finding in judged):
            continue
        where = f" on {event.component}" if event.component else ""
        text = (
            f"{event.kind}{f' {event.code}' if event.code is not None else ''}{where}: "
            f"{event.meaning}"
        )
        if event.severity in HARMFUL:
            kind: Literal["fail", "error"] = "fail" if event.hardware else "error"
            found.append(_finding(kind, check, text, event))
        elif event.severity == "warning":
            found.append(_finding("warn", check, text, event))
    return found


def _finding(
    kind: Literal["fail", "error", "warn"], check: str, text: str, event: Event
) -> Finding:
    key = event.kind if event.code is None else f"{event.kind}.{event.code}"
    return Finding(
        kind,
        check,
        text,
        component=event.component,
        action=event.action,
        quote=event.text,
        event=key,
    )
