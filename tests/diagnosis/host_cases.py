"""Conditions of causes, family by family: what a run measured, and how a cause stands by it.

A case names a measurement or an event, the number of its cause in the shipped data, the component
of the finding, what was measured and which events came, and how the cause stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from journals import bodies, check, due, entries, plan

from acceptance.core.advice import LikelyCause
from acceptance.core.finding import Finding
from acceptance.core.fold import fold
from acceptance.core.limit import Limit
from acceptance.core.message import Listed, Message, Quantity, Text
from acceptance.core.parts import parse
from acceptance.core.plan import Plan
from acceptance.core.record import Body, Event
from acceptance.diagnosis.causes import Evidence, evidence
from acceptance.reports import advice

NONE = Limit("count", "none is sound", high=0.0)
ALL = Limit("count", "all are due", low=1.0)
FUNCTIONS = {
    "0000:01:00.0": "gpu0",
    "0000:41:00.0": "gpu1",
    "0000:40:01.1": "gpu1",
    "nvme0": "disk:nvme0n1",
    "nvme0n1": "disk:nvme0n1",
    "0000:5c:00.0": "net:ens7",
}
BEGUN_S = 94.0  # before the check begins, by the clock of the journals
READ = ("kernel_faults_during", "system", 0.0, NONE)

Value = tuple[str, str, float, Limit | None]
Came = tuple[str, str | int | None, str | None, float | None]


class Case(NamedTuple):
    """One case; `stands` is confirmed, excluded or open."""

    of: str
    number: int
    component: str | None
    stands: str
    values: tuple[Value, ...] = ()
    events: tuple[Came, ...] = ()
    note: Text | None = None
    code: str = "outside_limit"
    count: float = 1.0
    text: str = "a line"


def cause(of: str, number: int) -> LikelyCause:
    """A cause of the shipped data."""
    book = advice.shipped()
    entry = book.measurements.get(of) or book.of_event(of)
    assert entry is not None, of
    return entry.causes[number - 1]


def finding(case: Case) -> Finding:
    """The finding that a case is about."""
    is_event = case.of not in advice.shipped().measurements
    return Finding(
        "fail",
        "check",
        case.code,
        {"measured": Quantity(case.count, "count")},
        None if is_event else case.of,
        None if case.component is None else parse(case.component),
        note=case.note,
        event=case.of if is_event else None,
    )


def measured(case: Case) -> Evidence:
    """The evidence of a run that measured what the case says."""
    planned: Plan = plan(
        check(
            "a.check", *(due(name, parse(of), "count", limit) for name, of, _, limit in case.values)
        )
        if case.values
        else check("a.check")
    )
    values = {(name, parse(of)): value for name, of, value, _ in case.values}
    records = list(bodies(planned, values))
    came = list(_events(case))
    return evidence(
        fold(entries([*records[:3], *came, *records[3:]])),
        {parse(name): parse(part) for name, part in FUNCTIONS.items()},
    )


def _events(case: Case) -> Iterable[Body]:
    for kind, code, of, at in case.events:
        component = None if of is None else parse(of)
        at_s = None if at is None else BEGUN_S + at
        yield Event(kind, "error", case.text, "a meaning", "", code, component, at_s)


def clauses(*codes: str | Message) -> Message:
    """A note of these codes."""
    return Message(
        "clauses",
        {"why": tuple(one if isinstance(one, Message) else Message(one) for one in codes)},
    )


def grew(what: str) -> Message:
    """A counter of a disk that grew."""
    return Message("disk_grew", {"count": "2", "what": Message(what)})


def counts(what: str) -> Message:
    """A counter of a disk's life."""
    return Message("disk_counts", {"count": "2", "what": Message(what)})


def low(name: str) -> Message:
    """An attribute of a disk below its threshold."""
    return Message("smart_attribute_low", {"name": name})


def kernel(*events: str) -> Message:
    """The note of faults in the kernel's log."""
    lines = (Message("kernel_fault", {"event": one, "text": "a line"}) for one in events)
    return Message("note", {"text": (Message("log_empty"), *lines)})


def links(*names: str) -> Message:
    """The note of the network links that were found."""
    return Message("links_found", {"links": Listed(names)})
