"""The findings from events of the machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from acceptance.core.finding import Finding
from acceptance.core.message import Values, translatable
from acceptance.core.record import HARMFUL, Event


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
        if event.severity in HARMFUL:
            kind: Literal["fail", "error"] = "fail" if event.hardware else "error"
            found.append(_finding(kind, check, event))
        elif event.severity == "warning":
            found.append(_finding("warn", check, event))
    return found


def _finding(kind: Literal["fail", "error", "warn"], check: str, event: Event) -> Finding:
    names = [event.kind, *([] if event.code is None else [str(event.code)])]
    values: Values = {"event": " ".join(names), "meaning": translatable(event.meaning)}
    return Finding(
        kind,
        check,
        "event_on" if event.component else "event",
        values,
        component=event.component,
        action=(event.action, *event.catalog) if event.action else (),
        quote=event.text,
        event=".".join(names),
    )
