"""What does not belong into the journal of a good run: strays, other versions, sessions that
died, runs that were closed.
"""

from __future__ import annotations

import itertools

from cases import each
from journals import bodies, entries
from msgspec.structs import replace
from test_fold import TWO, added, changed, told

from acceptance.core.fold import fold
from acceptance.core.parts import Gpu
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Measured,
    Note,
    Outcome,
    RunClosed,
    RunEnded,
    SessionEnded,
    SessionStarted,
    Skipped,
)
from acceptance.core.verdict import worst
from acceptance.reports.summary import exit_code


@each(
    "record",
    [
        Measured("a.one", "triad", Gpu(0), "GB/s", 200.0),
        Measured("a.one", "copy", Gpu(1), "GB/s", 200.0),
        Measured("a.one", "copy", Gpu(0), "GiB", 200.0),
        Measured("a.one", "copy", Gpu(0), "GB/s", None),
        Measured("c.three", "copy", Gpu(0), "GB/s", 200.0),
        CheckStarted("c.three"),
        CheckEnded("c.three", "pass", "", 1.0),
        Skipped("c.three", "no tool"),
        SessionStarted("load", "digest-of-the-plan", ("a.one",)),
        SessionStarted("host-before", "digest-of-the-plan", ()),
        SessionEnded("load", True, "exited 0", 1.0),
        SessionEnded("load", False, "died of SIGKILL", 1.0),
        SessionEnded("host-before", True, "exited 0", 1.0),
        Note("messages were lost", trouble=True),
        RunEnded(True, "again"),
        RunEnded(False, "stopped by SIGINT"),
        RunClosed("a.one", True, {}, "the machine was restarted"),
    ],
)
def test_what_does_not_belong_into_the_journal_of_a_good_run(record: Body) -> None:
    verdict = added(record)
    assert (verdict.verdict, exit_code(verdict)) == ("UNJUDGED", 3)
    assert told(verdict)


def test_a_check_outside_the_plan_is_told_once() -> None:
    stray: list[Body] = [
        CheckStarted("c.three"),
        Measured("c.three", "x", "y", "W", 1.0),
        CheckEnded("c.three", "fail", "", 1.0),
    ]
    assert told(added(*stray)) == ["run: c.three was run but is not in the plan"]


@each(
    "started",
    [{"digest": "another"}, {"collection": ()}, {"collection": ("b.two",)}],
    told=["digest", "nothing", "others"],
)
def test_a_session_of_another_rigproof_is_not_believed(started: dict[str, str]) -> None:
    verdict = changed(
        lambda body: [
            replace(body, **started)
            if isinstance(body, SessionStarted) and body.session == "load"
            else body
        ]
    )
    assert told(verdict) == [
        "run: session load ran another version of rigproof than the one that made the plan"
    ]


def test_a_session_that_died_says_how() -> None:
    verdict = changed(
        lambda body: [
            replace(body, complete=False, detail="died of SIGKILL")
            if isinstance(body, SessionEnded)
            else body
        ]
    )
    assert told(verdict) == [
        "run: session load died of SIGKILL",
        "run: session host-after died of SIGKILL",
    ]


def test_a_closed_run_tells_what_the_next_start_found() -> None:
    records = [body for body in bodies(TWO) if not isinstance(body, RunEnded)]
    verdict = fold(
        entries(
            [*records, RunClosed("a.one", True, {}, "the machine was restarted; a.one was running")]
        )
    )
    assert told(verdict) == [
        "run: the run did not come to its end",
        "run: the machine was restarted; a.one was running",
    ]


def test_worst_wins_in_this_order() -> None:
    order: tuple[Outcome, ...] = ("pass", "skip", "error", "fail")
    for first, second in itertools.product(order, order):
        assert worst([first, second]) == order[max(order.index(first), order.index(second))]
    assert worst([]) == "pass"


def test_a_failure_goes_before_what_is_unjudged_and_the_exit_code_follows() -> None:
    verdict = fold(entries([*bodies(TWO, {("faults", Gpu(0)): 1.0})[:-1]]))
    assert (verdict.verdict, exit_code(verdict)) == ("FAIL", 1)
    assert [finding.check for finding in verdict.of_kind("error", "fail")] == ["run", "a.one"]


def test_sessions_that_left_no_trace_are_told_unless_the_run_says_why_it_stopped() -> None:
    started, *_, end = bodies(TWO)
    lost = [
        f"run: session {name} began 0 and ended 0 times, not once"
        for name in ("load", "host-after")
    ]
    assert told(fold(entries([started, end])))[:2] == lost
    assert told(fold(entries([started])))[:2] == lost
    refused = [
        started,
        SessionEnded("load", True, "exited 64", 1.0),
        RunEnded(False, "stopped by SIGINT"),
    ]
    assert (
        told(fold(entries(refused)))[0] == "run: session load began 0 and ended 1 times, not once"
    )
    assert told(fold(entries([started, RunEnded(False, "stopped by SIGINT")])))[0] == (
        "run: the run did not come to its end: stopped by SIGINT"
    )


def test_of_two_ends_of_a_run_only_the_one_that_was_none_says_why() -> None:
    verdict = added(RunEnded(False, "stopped by SIGINT"))
    assert told(verdict) == ["run: the run did not come to its end: stopped by SIGINT"]


def test_what_a_check_did_not_measure_is_told_by_its_error_however_often_it_ended() -> None:
    twice: list[Body] = [CheckEnded("a.one", "error", "ToolTrouble: it printed nothing", 1.0)]
    verdict = changed(
        lambda body: (
            []
            if isinstance(body, Measured) and body.check == "a.one"
            else [body, *twice]
            if isinstance(body, CheckEnded) and body.check == "a.one"
            else [body]
        )
    )
    assert told(verdict) == [
        "a.one: began 1 and ended 2 times, not once: a check that has run is never run again",
        "a.one: ToolTrouble: it printed nothing",
    ]
