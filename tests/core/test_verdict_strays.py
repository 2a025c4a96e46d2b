"""What does not belong into the journal of a good run: strays, other versions, sessions that
died, runs that were closed.
"""

from __future__ import annotations

import itertools
from typing import Any

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
from acceptance.core.verdict import Verdict, worst


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
    assert (verdict.verdict, verdict.exit_code) == ("UNJUDGED", 3)
    assert told(verdict)


def test_worst_wins_in_this_order() -> None:
    order: tuple[Outcome, ...] = ("pass", "skip", "error", "fail")
    for first, second in itertools.product(order, order):
        assert worst([first, second]) == order[max(order.index(first), order.index(second))]
    assert worst([]) == "pass"


def test_a_failure_goes_before_what_is_unjudged_and_the_exit_code_follows() -> None:
    verdict = fold(entries([*bodies(TWO, {("faults", Gpu(0)): 1.0})[:-1]]))
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    assert [finding.check for finding in verdict.of_kind("error", "fail")] == ["run", "a.one"]


STRAY = (
    CheckStarted("c.three"),
    Measured("c.three", "x", "y", "W", 1.0),
    CheckEnded("c.three", "fail", "", 1.0),
)
BEGUN, *_, ENDED = bodies(TWO)
STOPPED = RunEnded(False, "stopped by SIGINT")
REFUSED = SessionEnded("load", True, "exited 64", 1.0)
RESTARTED = RunClosed("a.one", True, {}, "the machine was restarted; a.one was running")
OTHER = ["run: session load ran another version of rigproof than the one that made the plan"]
NO_TRACE = [
    f"run: session {name} began 0 and ended 0 times, not once" for name in ("load", "host-after")
]


def without_end(*more: Body) -> Verdict:
    """The journal of a run that ends otherwise."""
    return fold(entries([*bodies(TWO)[:-1], *more]))


def of_load(**started: Any) -> Verdict:
    """The session of the loads begins otherwise."""
    return changed(
        lambda body: [
            replace(body, **started)
            if isinstance(body, SessionStarted) and body.session == "load"
            else body
        ]
    )


def died() -> Verdict:
    return changed(
        lambda body: [
            replace(body, complete=False, detail="died of SIGKILL")
            if isinstance(body, SessionEnded)
            else body
        ]
    )


def ended_twice() -> Verdict:
    """A check that measured nothing."""
    twice = CheckEnded("a.one", "error", "ToolTrouble: it printed nothing", 1.0)
    return changed(
        lambda body: (
            []
            if isinstance(body, Measured) and body.check == "a.one"
            else [body, twice]
            if isinstance(body, CheckEnded) and body.check == "a.one"
            else [body]
        )
    )


@each(
    "verdict, expected, rest",
    [
        (added(*STRAY), ["run: c.three was run but is not in the plan"], 0),
        (of_load(digest="another"), OTHER, 0),
        (of_load(collection=()), OTHER, 0),
        (of_load(collection=("b.two",)), OTHER, 0),
        (
            died(),
            ["run: session load died of SIGKILL", "run: session host-after died of SIGKILL"],
            0,
        ),
        (
            without_end(RESTARTED),
            [
                "run: the run did not come to its end",
                "run: the machine was restarted; a.one was running",
            ],
            0,
        ),
        (added(STOPPED), ["run: the run did not come to its end: stopped by SIGINT"], 0),
        (
            ended_twice(),
            [
                "a.one: began 1 and ended 2 times, not once: a check that has run is never run "
                "again",
                "a.one: ToolTrouble: it printed nothing",
            ],
            0,
        ),
        (fold(entries([BEGUN, ENDED])), NO_TRACE, 2),
        (fold(entries([BEGUN])), NO_TRACE, 3),
        (
            fold(entries([BEGUN, REFUSED, STOPPED])),
            ["run: session load began 0 and ended 1 times, not once"],
            3,
        ),
        (
            fold(entries([BEGUN, STOPPED])),
            ["run: the run did not come to its end: stopped by SIGINT"],
            2,
        ),
    ],
    told=[
        "a check outside the plan is told once",
        "a session of another plan is not believed",
        "nor one that collected nothing",
        "nor one that collected others",
        "a session that died says how",
        "a closed run tells what the next start found",
        "of two ends of a run only the one that was none says why",
        "what a check did not measure is told by its error however often it ended",
        "sessions that left no trace",
        "also of a run without an end",
        "a session that ended and did not begin",
        "no trace of sessions is missed where the run says why it stopped",
    ],
)
def test_what_is_wrong_with_a_run_is_told_first(
    verdict: Verdict, expected: list[str], rest: int
) -> None:
    found = told(verdict)
    assert found[: len(expected)] == expected
    assert len(found) == len(expected) + rest
