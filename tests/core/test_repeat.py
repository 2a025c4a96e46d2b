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

from acceptance.core import repeat, whole_run
from acceptance.core.collection import REPEAT_SESSION
from acceptance.core.finding import Finding
from acceptance.core.fold import fold
from acceptance.core.past import Bounds, Level, Past
from acceptance.core.plan import Due
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
from acceptance.run.second_look import should_repeat
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


def test_a_value_as_it_was_needs_no_second_look() -> None:
    found = one(night(149.0))
    assert (found.outcome, found.findings) == ("pass", ())
    assert not should_repeat(found.judged, found.findings)
    assert found.judged[0].drift is not None
    assert not found.judged[0].drift.outside


def test_without_a_past_nothing_is_held_against_it() -> None:
    found = one(night(120.0, past=None))
    assert found.judged[0].drift is None
    assert not should_repeat(found.judged, found.findings)


def test_a_value_outside_is_worth_a_second_look() -> None:
    verdict = night(140.0)
    found = one(verdict)
    assert verdict.verdict == "PASS"
    assert told(verdict) == [("warn", "drift.step")]
    assert should_repeat(found.judged, found.findings)
    assert not should_repeat(found.judged[1:], found.findings)


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
    assert not should_repeat(one(verdict).judged, one(verdict).findings)


def test_a_remark_of_another_kind_is_no_reason_not_to_look_again() -> None:
    found = one(night(105.0))
    assert {finding.event for finding in found.findings} == {None, "drift.step"}
    assert should_repeat(found.judged, found.findings)


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
        words.of(finding)
        for finding in whole_run.findings(made, [*bodies(made), begun], stopped=False)
    ]
    assert texts == [f"session {REPEAT_SESSION} began 1 and ended 0 times, not once"]


def test_the_second_night_outside_fails_and_is_looked_at_again_all_the_same() -> None:
    verdict = night(140.0, past=BEFORE)
    assert (verdict.verdict, one(verdict).outcome) == ("FAIL", "fail")
    assert should_repeat(one(verdict).judged, one(verdict).findings)
    assert night(140.0, 139.0, past=BEFORE).verdict == "FAIL"
    assert night(140.0, 150.0, past=BEFORE).verdict == "PASS"


def test_a_limit_holds_for_the_second_look_too() -> None:
    verdict = night(140.0, 99.0)
    assert verdict.verdict == "FAIL"
    assert any(
        "measured 99 GB/s, limit" in words.of(finding) for finding in verdict.of_kind("fail")
    )


def test_a_second_look_at_one_measurement_judges_the_whole_check() -> None:
    wrong = [
        CheckStarted("a.one"),
        Measured("a.one", "faults", "gpu0", "count", 2.0),
        CheckEnded("a.one", "fail", "x", 1.0),
    ]
    verdict = night(140.0, more=wrong)
    assert verdict.verdict == "FAIL"
    assert any(
        "faults on gpu0: measured 2" in words.of(finding) for finding in verdict.of_kind("fail")
    )


def test_a_check_that_failed_by_its_limit_is_never_run_again() -> None:
    found = one(night(99.0))
    assert found.outcome == "fail"
    assert not should_repeat(found.judged, found.findings)


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_a_second_look_that_did_not_end_well_is_told(outcome: Outcome) -> None:
    bad: list[Body] = [CheckStarted("a.one"), CheckEnded("a.one", outcome, "the load hung", 1.0)]
    verdict = night(140.0, more=bad)
    assert verdict.verdict == {"fail": "FAIL", "error": "UNJUDGED"}[outcome]
    assert [words.of(finding) for finding in verdict.of_kind(outcome)] == [
        "at the repeat: the load hung"
    ]
    bad[1] = CheckEnded("a.one", outcome, "", 1.0)
    texts = [words.of(finding) for finding in night(140.0, more=bad).of_kind(outcome)]
    assert texts == [f"at the repeat: ended as {outcome}"]


@pytest.mark.parametrize("outcome", ["pass", "skip"])
def test_a_second_look_that_shows_nothing_changes_nothing(outcome: Outcome) -> None:
    empty: list[Body] = [CheckStarted("a.one"), CheckEnded("a.one", outcome, "no tool", 1.0)]
    verdict = night(140.0, more=empty)
    assert (verdict.verdict, told(verdict)) == ("PASS", [("warn", "drift.step")])


@each(
    "records, text",
    [
        ([CheckStarted("a.one")], "the repeat did not finish"),
        (
            [CheckStarted("a.one"), CheckStarted("a.one")],
            "the repeat began 2 and ended 0 times, not once",
        ),
        (
            [CheckEnded("a.one", "pass", "", 1.0)],
            "the repeat began 0 and ended 1 times, not once",
        ),
    ],
)
def test_a_torn_second_look_leaves_the_run_unjudged(records: list[Body], text: str) -> None:
    verdict = night(140.0, more=records)
    assert verdict.verdict == "UNJUDGED"
    assert [words.of(finding) for finding in one(verdict).findings if finding.kind == "error"] == [
        text
    ]


def test_what_it_measures_must_be_due() -> None:
    stray: list[Body] = [CheckStarted("a.one"), Measured("a.one", "copy", "gpu9", "GB/s", 150.0)]
    verdict = night(140.0, more=[*stray, CheckEnded("a.one", "pass", "", 1.0)])
    assert [words.of(finding) for finding in verdict.of_kind("error")] == [
        "measured copy on gpu9, which the plan does not hold"
    ]


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
