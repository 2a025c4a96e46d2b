"""Checks of two sessions side by side: to which of them an event, a note and a span belong."""

from __future__ import annotations

from math import inf

import journals
import pytest
from cases import each
from msgspec.structs import replace

from acceptance.core.event_finding import owners
from acceptance.core.fold import fold
from acceptance.core.parts import CPU, Component, Gpu, parse
from acceptance.core.plan import earlier_sessions
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Note,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
)
from acceptance.core.spans import CheckSpans, load_progress
from acceptance.core.verdict import Verdict
from acceptance.wording import words

GPU, HOST, LATER = "burn.gpu_burn[float]", "cpu.stress_ng", "link.copy"
PLAN = replace(
    journals.plan(
        journals.check(GPU, session="gpu-load"),
        journals.check(HOST, session="host-load"),
        journals.check(LATER),
    ),
    gpus=(Gpu(0),),
    gpu_functions=(parse("0000:01:00.0"), parse("0000:00:01.0")),
)
IDS = tuple(check.id for check in PLAN.checks)
GPU_SEGMENT, HOST_SEGMENT = "journal-gpu-load.jsonl", "journal-host-load.jsonl"


def at(boot_s: float, body: Body, segment: str = "journal.jsonl") -> Entry:
    return Entry(0, boot_s, "2026-01-01T00:00:00.000Z", body, segment)


def measured(name: str) -> list[Body]:
    (planned,) = (check for check in PLAN.checks if check.id == name)
    return journals.check_bodies(planned)[1:-1]


def session(name: str, check: str, segment: str, begin_s: float, end_s: float) -> list[Entry]:
    """A session with one check, from its second second to the last but one."""
    ends: list[tuple[float, Body]] = [
        (begin_s, SessionStarted(name, PLAN.digest, IDS)),  # type: ignore[arg-type]
        (begin_s + 1.0, CheckStarted(check)),
        *((begin_s + 1.0, body) for body in measured(check)),
        (end_s - 1.0, CheckEnded(check, "pass", "", 1.0)),
    ]
    return [at(boot_s, body, segment) for boot_s, body in ends]


# GPU from 101 to 119, HOST from 102 to 108, LATER from 131 to 139 seconds since boot.
RUN = [
    at(100.0, RunStarted("run-1", PLAN, {}, "machine-1")),
    *session("gpu-load", GPU, GPU_SEGMENT, 100.0, 120.0),
    *session("host-load", HOST, HOST_SEGMENT, 101.0, 109.0),
    at(109.5, SessionEnded("host-load", True, "exit code 0", 8.0)),
    at(120.5, SessionEnded("gpu-load", True, "exit code 0", 20.0)),
    *session("load", LATER, "journal-load.jsonl", 130.0, 140.0),
    at(140.5, SessionEnded("load", True, "exit code 0", 10.0)),
    at(141.0, RunEnded(True, "every session of the plan was run")),
]


def event(
    kind: str, component: Component | None = None, boot_s: float = 105.0, source: str = "kernel-log"
) -> Event:
    return Event(kind, "fatal", "said", "it broke", "look", 7, component, boot_s, source=source)


def judged(*more: Entry) -> Verdict:
    return fold(sorted([*RUN, *more], key=lambda entry: entry.boot_s))


def homes(one: Event, segment: str = "journal-kernel.jsonl") -> list[str]:
    verdict = judged(at(one.boot_s or 0.0, one, segment))
    assert verdict.verdict == "FAIL"
    return [finding.check for finding in verdict.of_kind("fail")]


def test_the_run_without_an_event_passes() -> None:
    assert judged().verdict == "PASS"


@each(
    "kind, component, home",
    [
        ("xid", "0000:01:00.0", [GPU]),
        ("xid", "gpu0", [GPU]),
        ("xid", "0000:81:00.0", [GPU]),  # a GPU that this run does not test
        ("xid", None, [GPU]),
        ("gpu-lost", "gpu0", [GPU]),
        ("gpu-hang", None, [GPU]),
        ("rm-init", None, [GPU]),
        ("sxid", None, [GPU]),
        ("driver", None, [GPU]),
        ("aer", "0000:01:00.0", [GPU]),
        ("aer", "0000:00:01.0", [GPU]),  # the bridge above it
        ("pcie", "0000:00:01.0", [GPU]),
        ("mce", None, [HOST]),
        ("mce", "cpu3", [HOST]),
        ("edac", "dimm:A1", [HOST]),
        ("memory-failure", None, [HOST]),
        ("thermal", "cpu0", [HOST]),
        ("apei", None, [HOST]),
        ("apei", "0000:01:00.0", [GPU]),
        ("apei", "0000:41:00.0", [GPU, HOST]),
        ("aer", "0000:41:00.0", [GPU, HOST]),  # neither loads it
        ("aer", None, [GPU, HOST]),
        ("disk", "nvme0n1", [GPU, HOST]),
        ("oom", None, [GPU, HOST]),
    ],
)
def test_whose_an_event_is_while_both_run(
    kind: str, component: str | None, home: list[str]
) -> None:
    assert homes(event(kind, parse(component) if component else None)) == home


@each(
    "kind, component, boot_s, home",
    [
        # only the GPUs' check runs, whose programs take a processor and RAM too
        ("xid", "gpu0", 115.0, [GPU]),
        ("mce", "cpu3", 115.0, [GPU]),
        # only the processors' check runs: it has no GPU
        ("xid", "gpu0", 102.5, [GPU]),
        ("xid", "gpu0", 125.0, ["run"]),
        # by itself
        ("xid", "gpu0", 135.0, [LATER]),
        ("mce", None, 135.0, [LATER]),
        ("aer", "0000:41:00.0", 135.0, [LATER]),
    ],
)
def test_whose_an_event_is_when_one_runs(
    kind: str, component: str | None, boot_s: float, home: list[str]
) -> None:
    assert homes(event(kind, parse(component) if component else None, boot_s)) == home


def test_what_a_gpu_reports_is_never_counted_for_a_check_without_one() -> None:
    early = [
        replace(one, boot_s=one.boot_s + 19.0) if one.segment == GPU_SEGMENT else one for one in RUN
    ]
    lone = event("xid", Gpu(0), 105.0)  # the GPUs' session has not begun yet
    found = fold(sorted([*early, at(105.0, lone)], key=lambda entry: entry.boot_s))
    assert [finding.check for finding in found.of_kind("fail")] == ["run"]
    host_only = replace(PLAN, checks=PLAN.checks[1:])
    assert owners(lone, [HOST], host_only) == (HOST,)  # as in a run that loads no GPU


def test_an_event_of_both_says_so_and_that_of_one_does_not() -> None:
    both = judged(at(105.0, event("oom")))
    told = f"oom 7 (ran side by side: {GPU}, {HOST}): it broke"
    assert [words.of(one) for one in both.of_kind("fail")] == [told, told]
    assert [len(check.events) for check in both.checks] == [1, 1, 0]
    (one,) = judged(at(105.0, event("mce", CPU))).of_kind("fail")
    assert words.of(one) == "mce 7 on cpu: it broke"


def test_what_a_load_reports_is_of_the_session_that_journalled_it() -> None:
    wrong = event("miscompare", Gpu(0), source="load")
    assert homes(wrong, GPU_SEGMENT) == [GPU]
    assert homes(event("other", None, source="load"), HOST_SEGMENT) == [HOST]


def test_both_may_have_an_event() -> None:
    verdict = judged(at(105.0, event("xid", Gpu(0))), at(105.0, event("edac", parse("mc0"))))
    assert {one.check for one in verdict.of_kind("fail")} == {GPU, HOST}


def test_the_checks_that_run_at_a_moment_and_whose_a_note_is() -> None:
    spans = CheckSpans(RUN)
    assert set(spans.at(0, 105.0)) == {GPU, HOST}
    assert spans.at(0, 115.0) == (GPU,)
    assert spans.at(0, 125.0) == ()
    notes = [
        at(105.0, Note("gpus proved", progress=True), GPU_SEGMENT),
        at(106.0, Note("host proved", progress=True), HOST_SEGMENT),
    ]
    assert load_progress(notes, spans) == {GPU: "gpus proved", HOST: "host proved"}


def test_a_check_that_its_session_did_not_survive_ends_with_it() -> None:
    died = [one for one in RUN if not isinstance(one.body, CheckEnded)]
    ends = {span.check: span.ended_s for span in CheckSpans(died).spans}
    assert ends == {HOST: 109.5, GPU: 120.5, LATER: 140.5}
    cut_off = [one for one in died if not isinstance(one.body, SessionEnded)]
    assert {span.ended_s for span in CheckSpans(cut_off).spans} == {inf}


@pytest.mark.parametrize("one", ["gpu-load", "host-load"])
def test_a_session_that_is_missing_is_no_pass(one: str) -> None:
    left = [entry for entry in RUN if entry.segment != f"journal-{one}.jsonl"]
    assert fold(left).verdict == "UNJUDGED"


def test_a_session_reads_those_of_the_phases_before_its_own() -> None:
    assert earlier_sessions("host-before") == earlier_sessions("load-again") == ()
    assert earlier_sessions("gpu-load") == earlier_sessions("host-load") == ("host-before",)
    assert earlier_sessions("load") == ("host-before", "gpu-load", "host-load")
