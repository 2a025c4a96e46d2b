from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from cases import each
from journals import NONE_ALLOWED, bodies, check, due, entries, plan
from msgspec.structs import replace

from acceptance.core.evidence import Observed, Sample, ToolRan
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.fold import fold
from acceptance.core.machine_facts import MachineFacts
from acceptance.core.message import Message, Texts
from acceptance.core.notes import run_notes
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan, Reduction
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Measured,
    Note,
    Outcome,
    RunEnded,
    SessionEnded,
    SessionStarted,
)
from acceptance.core.verdict import Verdict, VerdictWord
from acceptance.wording import words

TWO = plan(
    check("a.one", due("copy", Gpu(0)), due("faults", Gpu(0), "count", NONE_ALLOWED)),
    check("b.two", session="host-after"),
)


def told(verdict: Verdict, *kinds: str) -> list[str]:
    return [
        f"{finding.check}: {words.of(finding)}"
        for finding in verdict.of_kind(*(kinds or ("fail", "error", "skip")))
    ]


def changed(change: Callable[[Body], list[Body]], made: Plan = TWO) -> Verdict:
    """The verdict when each record of a passing journal is replaced by what
    `change` makes of it.
    """
    return fold(entries(itertools.chain.from_iterable(change(body) for body in bodies(made))))


def without(kind: type[Body], made: Plan = TWO) -> Verdict:
    return changed(lambda body: [] if isinstance(body, kind) else [body], made)


def added(*more: Body, made: Plan = TWO) -> Verdict:
    return fold(entries([*bodies(made), *more]))


def test_a_run_of_less_than_its_profile_is_partial_whatever_its_plan_says() -> None:
    less = (Reduction("burn", 1.0, 12.0, "s"),)
    verdict = fold(entries(bodies(replace(TWO, shortened=less))))
    assert (verdict.verdict, verdict.scope, verdict.shortened) == ("PASS", "partial", less)


def test_a_shortened_run_with_a_gap_is_not_judged() -> None:
    less = (Reduction("burn", 1.0, 12.0, "s"),)
    made = replace(TWO, scope="partial", shortened=less, gaps=("a gap",))
    assert fold(entries(bodies(made))).verdict == "UNJUDGED"


def test_a_complete_journal_of_good_values_passes() -> None:
    verdict = fold(entries(bodies(TWO)))
    assert (verdict.verdict, verdict.exit_code) == ("PASS", 0)
    assert told(verdict, "fail", "error", "skip", "warn", "waived") == []
    assert (verdict.run_id, verdict.profile, verdict.scope, verdict.provenance) == (
        "run-1",
        "smoke",
        "full",
        {"host": "box"},
    )
    assert [
        (one.id, one.title, one.session, one.outcome, one.seconds) for one in verdict.checks
    ] == [
        ("a.one", "title of a.one", "load", "pass", 1.0),
        ("b.two", "title of b.two", "host-after", "pass", 1.0),
    ]
    assert [check.outcome for check in verdict.checks] == ["pass", "pass"]
    assert verdict.inventory_declared


def test_records_that_decide_nothing() -> None:
    ran = ToolRan("a.one", ("stress-ng",), 1, 2.0)
    others = Observed({"cpu": 1}), Sample({"cpu_temperature_c": 200.0}), ran, Note("by the way")
    assert added(*others).verdict == "PASS"
    assert list(map(words.message, run_notes(entries(others)))) == ["by the way"]


@each(
    "kinds, word, code",
    [
        ((), "PASS", 0),
        (("warn", "waived"), "PASS", 0),
        (("warn", "skip"), "UNJUDGED", 3),
        (("error",), "UNJUDGED", 3),
        (("error", "skip", "fail"), "FAIL", 1),
    ],
)
def test_the_word_follows_from_the_findings_of_the_run_and_of_its_checks(
    kinds: tuple[FindingKind, ...], word: VerdictWord, code: int
) -> None:
    sound = fold(entries(bodies(TWO)))
    found = tuple(Finding(kind, "a.one", "ended", {"text": "x"}) for kind in kinds)
    checks = (replace(sound.checks[0], findings=found), *sound.checks[1:])
    for verdict in (replace(sound, findings=found), replace(sound, checks=checks)):
        assert (verdict.verdict, verdict.exit_code) == (word, code)


@pytest.mark.parametrize("starts", [0, 2])
def test_a_journal_without_one_beginning_cannot_be_judged(starts: int) -> None:
    started, *rest = bodies(TWO)
    with pytest.raises(ValueError, match=f"holds {starts} beginnings of a run, not one"):
        fold(entries([started] * starts + rest))
    with pytest.raises(ValueError, match="0 beginnings"):
        fold([])


def test_the_plans_own_troubles_keep_a_run_from_passing() -> None:
    assert told(fold(entries(bodies(plan(gaps=["gpu1: nothing loads it"]))))) == [
        "run: gpu1: nothing loads it"
    ]
    empty = replace(plan(), checks=())
    assert told(fold(entries(bodies(empty)))) == [
        "run: the plan holds no measurement, so nothing can pass"
    ]
    owes_nothing = replace(check(), due=())
    assert fold(entries(bodies(plan(owes_nothing)))).verdict == "UNJUDGED"


@each(
    "kind, expected",
    [
        (CheckEnded, ["a.one: did not finish", "b.two: did not finish"]),
        (
            CheckStarted,
            ["a.one: began 0 and ended 1 times, not once: a check that has run is never run again"],
        ),
        (
            Measured,
            ["a.one: copy on gpu0 was not measured", "a.one: faults on gpu0 was not measured"],
        ),
        (SessionStarted, ["run: session load began 0 and ended 1 times, not once"]),
        (SessionEnded, ["run: session load began 1 and ended 0 times, not once"]),
        (RunEnded, ["run: the run did not come to its end"]),
    ],
)
def test_what_is_missing_is_told(kind: type[Body], expected: list[str]) -> None:
    verdict = without(kind)
    assert verdict.verdict == "UNJUDGED"
    assert told(verdict)[: len(expected)] == expected


def test_a_check_that_never_ran_is_one_sentence_with_the_reason() -> None:
    end = RunEnded(False, "gpu.present did not pass")
    verdict = fold(entries([bodies(TWO)[0], end]))
    assert told(verdict) == [
        "run: the run did not come to its end: gpu.present did not pass",
        "a.one: never ran: gpu.present did not pass",
        "b.two: never ran: gpu.present did not pass",
    ]
    assert [one.outcome for one in verdict.checks] == ["error", "error"]


def test_what_a_check_proved_before_it_died_stays() -> None:
    extra = Measured("a.one", "copy", Gpu(9), "GB/s", 200.0)
    failed = Measured("a.one", "copy", Gpu(0), "GB/s", 50.0)
    records = [body for body in bodies(TWO) if not isinstance(body, CheckEnded | Measured)]
    verdict = fold(entries([*records[:3], failed, extra, *records[3:]]))
    assert verdict.verdict == "FAIL"
    assert [line.split(";")[0] for line in told(verdict)][:3] == [
        "a.one: copy on gpu0: measured 50 GB/s, limit >= 100 GB/s",
        "a.one: measured copy on gpu9, which the plan does not hold",
        "a.one: did not finish",
    ]


def ended(outcome: Outcome, message: Texts, *codes: str) -> Callable[[Body], list[Body]]:
    return lambda body: [
        CheckEnded("a.one", outcome, message, 1.0, codes)
        if isinstance(body, CheckEnded) and body.check == "a.one"
        else body
    ]


@each(
    "outcome, verdict",
    [("pass", "PASS"), ("fail", "FAIL"), ("error", "UNJUDGED"), ("skip", "UNJUDGED")],
)
@each("message", ["it says why", ""])
def test_the_sessions_own_word_counts_though_all_values_are_good(
    outcome: Outcome, verdict: str, message: str
) -> None:
    found = changed(ended(outcome, message))
    assert found.verdict == verdict
    assert found.checks[0].outcome == outcome
    expected = (
        []
        if outcome == "pass"
        else [f"a.one: {message or f'ended as {outcome} without saying why'}"]
    )
    assert told(found) == expected


def test_a_fault_that_the_session_repeats_is_told_once() -> None:
    text = "copy on gpu0: measured 50 GB/s, limit >= 100 GB/s; basis: a basis"
    records = bodies(TWO, {("copy", Gpu(0)): 50.0})
    records = [ended("fail", text, "outside_limit")(body)[0] for body in records]
    assert told(fold(entries(records)), "fail") == [f"a.one: {text}", f"b.two: {text}"]


def test_several_faults_that_the_session_names_together_are_told_once() -> None:
    own = fold(entries(bodies(TWO, {("copy", Gpu(0)): 50.0, ("faults", Gpu(0)): 2.0})))
    faults = [words.of(finding) for finding in own.checks[0].findings]
    records = [
        ended("fail", "\n".join(faults), "outside_limit")(body)[0]
        for body in bodies(TWO, {("copy", Gpu(0)): 50.0, ("faults", Gpu(0)): 2.0})
    ]
    assert [words.of(finding) for finding in fold(entries(records)).checks[0].findings] == faults


def test_a_reason_that_only_the_session_knows_is_told_beside_ours() -> None:
    bad = Measured("a.one", "copy", Gpu(0), "GB/s", None)
    records = [ended("error", "the load hung; it last said: x")(body)[0] for body in bodies(TWO)]
    verdict = fold(entries([*records[:3], bad, *records[3:]]))
    assert told(verdict) == [
        "a.one: copy on gpu0 is no finite number",
        "a.one: copy on gpu0 was measured 2 times in one run: one value of each is due",
        "a.one: the load hung; it last said: x",
    ]


def test_reasons_of_several_lines_stand_on_one() -> None:
    verdict = changed(ended("error", ("one", Message("no_disk"))))
    assert told(verdict) == ["a.one: one disk health: no disk was found"]


def test_an_error_replaces_the_list_of_what_is_missing_for_its_sake() -> None:
    records = [
        ended("error", "the load hung")(body)[0]
        for body in bodies(TWO)
        if not isinstance(body, Measured) or body.check != "a.one"
    ]
    assert told(fold(entries(records))) == ["a.one: the load hung"]


def test_a_check_that_ran_twice_is_no_pass_and_the_worst_word_counts() -> None:
    verdict = added(CheckStarted("a.one"), CheckEnded("a.one", "fail", "second time", 2.0))
    assert (verdict.verdict, verdict.checks[0].outcome, verdict.checks[0].seconds) == (
        "FAIL",
        "fail",
        3.0,
    )
    assert (
        "a.one: began 2 and ended 2 times, not once: a check that has run is never run again"
        in told(verdict)
    )
    assert added(CheckStarted("a.one")).verdict == "UNJUDGED"


def test_a_baseline_that_nothing_compares_is_no_verdict() -> None:
    birth = MachineFacts("run-0", "2026-01-01T00:00:00.000Z", (), {}, (), ())
    with pytest.raises(ValueError, match="the facts of a baseline, and nothing compares them"):
        fold(entries(bodies(replace(plan(), baseline=birth))))
