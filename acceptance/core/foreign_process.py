"""Foreign processes: who else used the tested GPUs, and which checks that invalidates.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from acceptance.core.finding import Finding
from acceptance.core.message import Message, Text, Values, english
from acceptance.core.parts import Component
from acceptance.core.plan import LOAD_SESSIONS, PlannedCheck
from acceptance.core.record import Entry, ForeignProcess
from acceptance.core.spans import CheckSpans

# Units of rates and times, which another program on the same GPU changes.
RATES = frozenset({"GB/s", "GFLOP/s", "TFLOP/s", "MT/s", "Mbit/s", "us", "ns", "s"})


@dataclass(frozen=True, slots=True)
class GpuUse:
    """One use of a GPU by others, in seconds since boot number `boot`.

    `until_s` is infinite where no end was seen.
    """

    who: Text
    gpu: Component
    boot: int
    since_s: float
    until_s: float
    pid: int | None = None


def uses(entries: Sequence[Entry]) -> tuple[GpuUse, ...]:
    """Every use of a GPU by others, in journal order.

    The record of its end replaces that of its beginning.
    """
    found: dict[tuple[int, Component, int | None, str | None, float], GpuUse] = {}
    for entry in entries:
        if isinstance(one := entry.body, ForeignProcess):
            name = (entry.boot, one.component, one.pid, one.command, one.since_s)
            until_s = inf if one.until_s is None else one.until_s
            found[name] = GpuUse(one.who, one.component, entry.boot, one.since_s, until_s, one.pid)
    return tuple(found.values())


def is_disturbed(check: PlannedCheck, gpu: Component) -> bool:
    """Whether foreign use of a GPU invalidates a check of it.

    It does where the check keeps the GPU busy, or measures a rate or a time of it.
    """
    return check.session in LOAD_SESSIONS and (
        check.gpu_load_s > 0.0
        or any(due.unit in RATES and due.component.holds(gpu) for due in check.due)
    )


def findings(check: PlannedCheck, uses: Sequence[GpuUse], spans: CheckSpans) -> list[Finding]:
    """An error for each foreign use of a GPU that overlaps a check that it invalidates."""
    found: list[Finding] = []
    for span in spans.spans:
        for use in uses if span.check == check.id else ():
            begin_s, end_s = span.began_s, span.ended_s
            meets = use.boot == span.boot and use.since_s <= end_s and use.until_s >= begin_s
            if meets and is_disturbed(check, use.gpu):
                values: Values = {"who": use.who, "when": _when(use, begin_s, end_s)}
                one = Finding(
                    "error",
                    check.id,
                    english(
                        "used_by_others",
                        "{component} was also used by {who} {when}: end it, and run again",
                    ),
                    values,
                    component=use.gpu,
                )
                found += [one] if one not in found else []
    return found


def _when(use: GpuUse, begin_s: float, end_s: float) -> Message:
    values = {"since": round(use.since_s - begin_s)} if use.since_s > begin_s else {}
    if use.until_s >= end_s:
        return (
            Message(english("check_since", "from second {since} to the end of this check"), values)
            if values
            else Message(english("whole_check", "for the whole of this check"))
        )
    until = {"until": round(use.until_s - begin_s)}
    return Message(
        english("check_since_until", "from second {since} to second {until} of this check")
        if values
        else english("check_until", "from its beginning to second {until} of this check"),
        values | until,
    )
