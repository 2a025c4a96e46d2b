"""The repeat within a run, as the fold sees it: values that lay outside what they were are
taken once more.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import pytest
from cases import each
from journals import NONE_ALLOWED, bodies, check, check_bodies, due, entries, plan
from msgspec.structs import replace

from acceptance.core import repeat
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.fold import fold, run_findings
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import REPEAT_SESSION, Due
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Measured,
    Outcome,
    SessionEnded,
    SessionStarted,
)
from acceptance.core.verdict import CheckResult, Verdict
from acceptance.wording import words

# Limit 100, warned of below 110; on the nights before it was 150.
WAS = Past(
    decides=True,
    off_fails=3,
    off_of=14,
    level=Level(150.0, 10, 1.0, 5.0, Bounds(low=145.0)),
)
BEFORE = replace(WAS, before=True)


def remembered(past: Past | None = WAS) -> Due:
    owed = due("copy", "gpu0")
    return owed.against(past) if past else owed


def night(
    first: float, *again: float, past: Past | None = WAS, more: Iterable[Body] = ()
) -> Verdict:
    made = plan(
        check("a.one", remembered(past), due("faults", "gpu0", "count", NONE_ALLOWED)),
        check("b.two"),
    )
    own = bodies(made, {("copy", "gpu0"): first})
    return fold([*entries(own[:-1]), *seconds(again, more), *entries(own[-1:], start_s=900.0)])


def seconds(values: Iterable[float], more: Iterable[Body] = ()) -> list[Entry]:
    """What a repeat at a.one writes, and the supervisor's word on it."""
    written: list[Body] = list(more)
    for value in values:
        written += check_bodies(check("a.one", due("copy", "gpu0")), {("copy", "gpu0"): value})
    if not written:
        return []
    begun = SessionStarted(REPEAT_SESSION, "digest-of-the-plan", ("a.one", "b.two"))
    own = [
        replace(one, segment=repeat.SEGMENT) for one in entries([begun, *written], start_s=500.0)
    ]
    return [*own, *entries([SessionEnded(REPEAT_SESSION, True, "exited 0", 2.0)], start_s=600.0)]


def one(verdict: Verdict) -> CheckResult:
    return next(found for found in verdict.checks if found.id == "a.one")


def told(verdict: Verdict) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.event) for finding in one(verdict).findings]


@pytest.mark.parametrize(
    ("again", "event", "outside", "unsteady"),
    [(139.0, "drift.step", True, False), (150.0, "drift.unsteady", False, True)],
)
def test_what_the_second_look_shows_is_told(
    again: float, event: str, outside: bool, unsteady: bool
) -> None:
    verdict = night(140.0, again)
    assert verdict.verdict == "PASS"
    assert told(verdict) == [("warn", event)]
    judged = one(verdict).judged[0]
    assert (judged.value, judged.again) == (140.0, again)
    assert judged.drift is not None
    assert (judged.drift.outside, judged.drift.unsteady, judged.drift.look_again) == (
        outside,
        unsteady,
        False,
    )
    assert not repeat.should_repeat(one(verdict).judged, one(verdict).findings)


def troubles(*own: Body, known: Sequence[Finding] = ()) -> list[str]:
    return [words.of(finding) for finding in repeat.repeat_findings("a.one", entries(own), known)]


def test_what_a_second_look_ended_with_is_told_once() -> None:
    known = [
        Finding("warn", "a.one", "drifted"),
        Finding("fail", "a.one", "outside_limit"),
    ]

    def said(message: str, *codes: str) -> list[str]:
        ended = CheckEnded("a.one", "fail", message, 1.0, codes)
        return troubles(CheckStarted("a.one"), ended, known=known)

    assert said("faults on gpu0: measured 2; and more", "not_finite", "outside_limit") == []
    assert said("the load hung") == ["at the repeat: the load hung"]
    assert said("lower", "drifted") == ["at the repeat: lower"], "that was a remark only"


def test_what_ended_without_words_is_told_by_its_outcome() -> None:
    told = {
        message: words.of(repeat.end_of(CheckEnded("a.one", "error", message, 1.0)))
        for message in ("", (), "it hung", ("it hung", "and died"))
    }
    assert told[""] == told[()] != told["it hung"]
    assert "error" in told[""]
    assert told["it hung"] == "it hung"
    assert told["it hung", "and died"] == "it hung and died"


def test_a_second_look_begins_and_ends_once() -> None:
    began, ended = CheckStarted("a.one"), CheckEnded("a.one", "pass", "", 1.0)
    assert troubles() == troubles(began, ended) == []
    assert troubles(began) == ["the repeat did not finish"]
    for own in ([ended], [began, ended, ended], [began, began, ended], [began, began]):
        counts = f"began {own.count(began)} and ended {own.count(ended)} times, not once"
        assert troubles(*own) == [f"the repeat {counts}"]


def test_a_session_of_second_looks_that_never_ended_is_told() -> None:
    made = plan(check("a.one"))
    begun = SessionStarted(REPEAT_SESSION, made.digest, ("a.one",))
    texts = [
        words.of(finding) for finding in run_findings(made, [*bodies(made), begun], stopped=False)
    ]
    assert texts == [f"session {REPEAT_SESSION} began 1 and ended 0 times, not once"]


def test_the_second_night_outside_fails_and_is_looked_at_again_all_the_same() -> None:
    verdict = night(140.0, past=BEFORE)
    assert (verdict.verdict, one(verdict).outcome) == ("FAIL", "fail")
    assert repeat.should_repeat(one(verdict).judged, one(verdict).findings)
    assert night(140.0, 139.0, past=BEFORE).verdict == "FAIL"
    assert night(140.0, 150.0, past=BEFORE).verdict == "PASS"


@each(
    "first, past, findings, outside, look_again",
    [
        (149.0, WAS, [], False, False),
        (120.0, None, [], None, False),
        (140.0, WAS, [("warn", "drift.step")], True, True),
        (105.0, WAS, [("warn", None), ("warn", "drift.step")], True, True),
        (99.0, WAS, [("fail", None), ("warn", "drift.step")], True, False),
    ],
    told=[
        "a value as it was needs no second look",
        "without a past nothing is held against it",
        "a value outside is worth a second look",
        "a remark of another kind is no reason not to look again",
        "a check that failed by its limit is never run again",
    ],
)
def test_which_value_is_worth_a_second_look(
    first: float,
    past: Past | None,
    findings: list[tuple[str, str | None]],
    outside: bool | None,
    look_again: bool,
) -> None:
    verdict = night(first, past=past)
    found = one(verdict)
    assert told(verdict) == findings
    drift = found.judged[0].drift
    assert (drift and drift.outside) == outside
    assert repeat.should_repeat(found.judged, found.findings) == look_again
    assert not repeat.should_repeat(found.judged[1:], found.findings)


@pytest.mark.parametrize("outcome", ["pass", "skip"])
def test_a_second_look_that_shows_nothing_changes_nothing(outcome: Outcome) -> None:
    empty: list[Body] = [CheckStarted("a.one"), CheckEnded("a.one", outcome, "no tool", 1.0)]
    verdict = night(140.0, more=empty)
    assert (verdict.verdict, told(verdict)) == ("PASS", [("warn", "drift.step")])


BEGUN, PASSED = CheckStarted("a.one"), CheckEnded("a.one", "pass", "", 1.0)
FAULTY = Measured("a.one", "faults", "gpu0", "count", 2.0)
STRAY = Measured("a.one", "copy", "gpu9", "GB/s", 150.0)


def failed(outcome: Outcome, text: str) -> list[Body]:
    return [BEGUN, CheckEnded("a.one", outcome, text, 1.0)]


@each(
    "again, more, outcome, kind, text",
    [
        ((99.0,), [], "FAIL", "fail", "measured 99 GB/s, limit"),
        (
            (),
            [BEGUN, FAULTY, CheckEnded("a.one", "fail", "x", 1.0)],
            "FAIL",
            "fail",
            "faults on gpu0: measured 2",
        ),
        ((), failed("fail", "the load hung"), "FAIL", "fail", "at the repeat: the load hung"),
        ((), failed("error", "it hung"), "UNJUDGED", "error", "at the repeat: it hung"),
        ((), failed("fail", ""), "FAIL", "fail", "at the repeat: ended as fail"),
        ((), failed("error", ""), "UNJUDGED", "error", "at the repeat: ended as error"),
        ((), [BEGUN], "UNJUDGED", "error", "the repeat did not finish"),
        (
            (),
            [BEGUN, BEGUN],
            "UNJUDGED",
            "error",
            "the repeat began 2 and ended 0 times, not once",
        ),
        ((), [PASSED], "UNJUDGED", "error", "the repeat began 0 and ended 1 times, not once"),
        (
            (),
            [BEGUN, STRAY, PASSED],
            "UNJUDGED",
            "error",
            "measured copy on gpu9, which the plan does not hold",
        ),
    ],
    told=[
        "a limit holds for the second look too",
        "a second look at one measurement judges the whole check",
        "a second look that failed",
        "a second look that could not be had",
        "one that failed without words",
        "one that could not be had without words",
        "a second look without an end",
        "two beginnings without an end",
        "an end without a beginning",
        "what it measures must be due",
    ],
)
def test_what_a_second_look_does_to_the_verdict(
    again: tuple[float, ...], more: list[Body], outcome: str, kind: FindingKind, text: str
) -> None:
    verdict = night(140.0, *again, more=more)
    assert verdict.verdict == outcome
    assert len([one for one in verdict.of_kind(kind) if text in words.of(one)]) == 1


def test_its_session_is_due_once_or_not_at_all() -> None:
    made = plan(check("a.one", remembered()))
    own = bodies(made, {("copy", "gpu0"): 140.0})
    begun = SessionStarted(REPEAT_SESSION, "digest-of-the-plan", ("a.one",))
    for stray in (
        [begun],
        [SessionEnded(REPEAT_SESSION, True, "exited 0", 1.0)],
        [begun, SessionEnded(REPEAT_SESSION, False, "died", 1.0)],
    ):
        records: list[Body] = [*own[:-1], *stray, own[-1]]
        assert fold(entries(records)).verdict == "UNJUDGED"
    assert (
        fold(
            entries(
                [*own[:-1], begun, SessionEnded(REPEAT_SESSION, True, "exited 0", 1.0), own[-1]]
            )
        ).verdict
        == "PASS"
    )
    other = SessionStarted(REPEAT_SESSION, "another digest", ("a.one",))
    assert (
        fold(
            entries(
                [*own[:-1], other, SessionEnded(REPEAT_SESSION, True, "exited 0", 1.0), own[-1]]
            )
        ).verdict
        == "UNJUDGED"
    )


def test_entries_are_divided_by_their_segment() -> None:
    own, later = entries(bodies(plan())), seconds([150.0])
    first, second = repeat.split_repeat(itertools.chain(own, later))
    assert first == [*own, later[-1]]
    assert second == later[:-1]
