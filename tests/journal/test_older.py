"""Journals of an older rigproof, in which the end of a check is a sentence without codes."""

from __future__ import annotations

from collections.abc import Sequence

from cases import each
from hypothesis import given
from hypothesis import strategies as st
from journals import bodies, check, due, entries, plan, plans, records
from msgspec.structs import replace

from acceptance.core.limit import Limit
from acceptance.core.parts import Gpu
from acceptance.core.plan import Plan
from acceptance.core.record import Body, CheckEnded, Measured, Outcome, Skipped
from acceptance.core.verdict import Verdict
from acceptance.journal import older
from acceptance.machine import changes
from acceptance.wording import words

FAULTS = due("faults", unit="count", limit=Limit("count", "no fault is sound", high=0.0))
ONE = plan(check("a.one", due(), FAULTS))
COPY = "copy on gpu0: measured 50 GB/s, limit >= 100 GB/s; basis: a basis"
FAULT = "faults on gpu0: measured 2, limit <= 0; basis: no fault is sound"
BAD = {("copy", Gpu(0)): 50.0, ("faults", Gpu(0)): 2.0}


def judged(records: Sequence[Body]) -> Verdict:
    """As a journal that is read is judged."""
    found = tuple(entries(records))
    verdict = changes.judge(found)
    assert older.lacks_codes(found)
    again = older.with_codes(found, verdict)
    assert not older.lacks_codes(again)
    return changes.judge(again)


def ended(
    made: Plan, outcome: Outcome, message: str, values: dict[tuple[str, str], float]
) -> list[Body]:
    return [
        replace(body, outcome=outcome, message=message) if isinstance(body, CheckEnded) else body
        for body in bodies(made, values)
    ]


def told(verdict: Verdict) -> list[str]:
    return [words.of(finding) for finding in verdict.checks[0].findings]


@each(
    "message, own",
    [
        (f"{COPY}\n{FAULT}", []),
        (COPY, []),  # the session saw one of them only
        (f"{COPY} (and more)", []),
        ("", []),
        ("the tool died", ["the tool died"]),
        ("copy on gpu0: measured 49 GB/s", ["copy on gpu0: measured 49 GB/s"]),
    ],
)
def test_what_the_session_repeats_is_told_once(message: str, own: list[str]) -> None:
    assert told(judged(ended(ONE, "fail", message, BAD))) == [COPY, FAULT, *own]


def test_an_error_of_the_session_is_told_beside_a_failure() -> None:
    verdict = judged(ended(ONE, "error", COPY, BAD))
    assert told(verdict) == [COPY, FAULT, COPY], "a failure is no error"
    assert verdict.verdict == "FAIL"


def test_what_was_not_measured_is_told_in_the_words_of_the_session() -> None:
    message = "copy on gpu0 was not measured\nfaults on gpu0 was not measured"
    found = [body for body in ended(ONE, "error", message, {}) if not isinstance(body, Measured)]
    assert told(judged(found)) == [message]


def test_a_skip_is_told_once() -> None:
    found = [
        body for body in ended(ONE, "skip", "no such tool", {}) if not isinstance(body, Measured)
    ]
    found.insert(3, Skipped("a.one", "no such tool"))
    assert told(judged(found)) == [
        "copy on gpu0 was not measured: no such tool",
        "faults on gpu0 was not measured: no such tool",
    ]


def test_codes_that_are_there_are_believed() -> None:
    found = [
        replace(body, outcome="fail", message="x", codes=())
        if isinstance(body, CheckEnded)
        else body
        for body in bodies(ONE, BAD)
    ]
    assert not older.lacks_codes(entries(found))
    assert not older.lacks_codes(entries(bodies(ONE)))


@given(plans(), st.lists(records, max_size=8))
def test_no_verdict_depends_on_it(made: Plan, more: list[Body]) -> None:
    """It decides what is told twice, and nothing else."""
    found = tuple(entries([*bodies(made), *more]))
    verdict = changes.judge(found)
    again = changes.judge(older.with_codes(found, verdict))
    assert again.verdict == verdict.verdict
    assert [one.outcome for one in again.checks] == [one.outcome for one in verdict.checks]
    for one, two in zip(again.checks, verdict.checks, strict=True):
        assert {words.of(finding) for finding in one.findings} <= set(map(words.of, two.findings))


def test_a_model_that_was_not_known_is_known_by_its_origin() -> None:
    for origin in ("model sheets", "architectures"):
        assert older.is_no_model(replace(due(limit=None), origin=origin))
    assert not older.is_no_model(due(limit=None))
