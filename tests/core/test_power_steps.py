"""Events of the machine belong to the power step in which they came."""

from __future__ import annotations

from math import inf

import journals
from cases import each
from msgspec.structs import replace
from worded import worded

from acceptance.core.evidence import ToolRan
from acceptance.core.message import Message
from acceptance.core.notes import StepSpan, event_notes, run_notes, steps_by_check
from acceptance.core.parts import Gpu
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Note,
    SessionEnded,
    Severity,
)

CHECK = "power.pulses"


def begins(step: str) -> Note:
    return Note(Message("power_step_begins", {"step": step}), progress=True)


def ends(step: str) -> Note:
    about = {"step": step, "edges": 36, "right": 70, "wrong": 0}
    return Note(Message("power_step_ended", about), progress=True)


def xid(moment_s: float | None, severity: Severity = "fatal", code: int | None = 79) -> Event:
    return Event("xid", severity, "NVRM: ...", "lost", "look", code, Gpu(1), moment_s)


# by the clock: 100 s the check, 101 to 102 one step, 103 to 104 the other, 106 the check's end
BODIES: list[Body] = [
    CheckStarted(CHECK),
    *(begins("1 Hz"), ends("1 Hz")),
    *(begins("2 Hz"), ends("2 Hz")),
    ToolRan(CHECK, ("pulse",), 0, 9.0),
    CheckEnded(CHECK, "pass", "", 9.0),
]


def with_event(event: Event) -> list[Entry]:
    return journals.entries([*BODIES, event])


@each(
    "moment_s, step",
    [
        (100.9, None),
        (101.0, "1 Hz"),
        (102.0, "1 Hz"),
        (102.5, None),
        (103.5, "2 Hz"),
        (104.1, None),
        (None, None),  # it counts when it was written
    ],
)
def test_an_event_during_a_step(moment_s: float | None, step: str | None) -> None:
    notes = worded([*run_notes(with_event(xid(moment_s)))])
    said = [note for note in notes if "came during" in note]
    assert said == ([] if step is None else [f"xid 79 on gpu1 came during a power step: {step}"])


def test_what_belongs_to_no_step() -> None:
    another_boot = [
        *journals.entries(BODIES),
        Entry(9, 101.5, "2026-01-01T00:00:00.000Z", xid(101.5), "closing.jsonl", 1),
    ]
    for entries in (
        another_boot,
        with_event(xid(101.5, "info")),
        journals.entries([*BODIES[:1], xid(101.5)]),
    ):
        assert not any("came during" in note for note in worded([*run_notes(entries)]))
    said = worded([*run_notes(with_event(xid(101.5, code=None)))])
    assert "xid on gpu1 came during a power step: 1 Hz" in said
    (of_machine,) = event_notes(with_event(replace(xid(101.5), component=None)))
    assert "part" not in of_machine.values


@each(
    "end, ended_s",
    [
        (ToolRan(CHECK, ("pulse",), 1, 9.0), 102.0),
        (CheckEnded(CHECK, "error", "it died", 9.0), 102.0),
        (SessionEnded("load", False, "was killed", 9.0), 102.0),
        (CheckStarted("power.ladder"), 102.0),
        (begins("5 Hz"), 102.0),
        (xid(None), inf),
    ],
)
def test_a_step_ends_with_its_load(end: Body, ended_s: float) -> None:
    (first, *_), *_ = steps_by_check(journals.entries([CheckStarted(CHECK), begins("1 Hz"), end]))
    assert first == StepSpan("1 Hz", 0, 101.0, ended_s, segment="journal.jsonl")


def test_what_another_session_journals_meanwhile_ends_no_step() -> None:
    found = journals.entries([CheckStarted(CHECK), begins("1 Hz"), begins("2 Hz")])
    beside: list[Body] = [
        CheckStarted("cpu.stress_ng"),
        CheckEnded("cpu.stress_ng", "pass", "", 1.0),
        SessionEnded("host-load", True, "exit code 0", 1.0),
    ]
    other = [
        replace(entry, segment="journal-host-load.jsonl") for entry in journals.entries(beside)
    ]
    ((first, second),) = steps_by_check([*found[:2], *other, found[2]])
    assert (first.ended_s, second.ended_s) == (102.0, inf)


def test_a_step_ends_with_its_session_of_which_the_supervisor_tells() -> None:
    *own, end = journals.entries(
        [CheckStarted(CHECK), begins("1 Hz"), SessionEnded("load", False, "was killed", 9.0)]
    )
    own = [replace(entry, segment="journal-load.jsonl") for entry in own]
    ((step,),) = steps_by_check([*own, end])
    assert step.ended_s == 102.0


def test_the_steps_of_each_check() -> None:
    found = list(steps_by_check(journals.entries([*BODIES, CheckStarted("power.step"), *BODIES])))
    assert [[(one.step, one.ended) for one in steps] for steps in found] == [
        [("1 Hz", True), ("2 Hz", True)],
        [("1 Hz", True), ("2 Hz", True)],
    ]
    assert not list(steps_by_check(journals.entries([CheckStarted(CHECK), Note("1 Hz")])))
