"""A night on which nothing was run, because somebody was using the machine."""

from __future__ import annotations

import pytest
from journals import bodies, entries
from test_fold import TWO

from acceptance.core.fold import fold
from acceptance.core.record import Body, Postponed, RunEnded
from acceptance.core.verdict import Verdict
from acceptance.wording import words

BUSY = ("gpu0: train (process 12, 70.2 GiB) computes on it",)


def night(in_a_row: int, *more: Body, reasons: tuple[str, ...] = BUSY) -> Verdict:
    started = bodies(TWO)[0]
    return fold(
        entries(
            [
                started,
                Postponed(reasons, in_a_row, 3),
                *more,
                RunEnded(False, "the machine is in use"),
            ]
        )
    )


@pytest.mark.parametrize("in_a_row", [1, 2])
def test_a_night_in_use_is_skipped_and_proves_nothing(in_a_row: int) -> None:
    verdict = night(in_a_row)
    assert (verdict.verdict, verdict.exit_code) == ("UNJUDGED", 3)
    (finding,) = verdict.findings
    assert (finding.kind, finding.check, finding.event) == ("skip", "run", "postponed")
    told = f"({in_a_row} in a row, 3 are a failure)"
    assert words.of(finding) == f"the machine is in use, so nothing was run {told}: {BUSY[0]}"
    assert [(one.id, one.outcome, one.findings, one.seconds) for one in verdict.checks] == [
        ("a.one", "skip", (), 0.0),
        ("b.two", "skip", (), 0.0),
    ]
    assert verdict.postponed == Postponed(BUSY, in_a_row, 3)
    assert (verdict.run_id, verdict.profile, verdict.scope, verdict.inventory_declared) == (
        "run-1", "smoke", "full", True,
    )  # fmt: skip
    assert verdict.provenance == {"host": "box"}


@pytest.mark.parametrize("in_a_row", [3, 4])
def test_too_many_of_them_in_a_row_are_a_failure(in_a_row: int) -> None:
    verdict = night(in_a_row)
    assert (verdict.verdict, verdict.exit_code) == ("FAIL", 1)
    (finding,) = verdict.of_kind("fail")
    told = f"skipped {in_a_row} times in a row, because the machine was in use each time (limit: 2)"
    assert words.of(finding) == f"{told}; now: {BUSY[0]}"


def test_a_reason_that_is_missing_is_said() -> None:
    assert words.of(night(1, reasons=()).findings[0]).endswith(": without a reason")


def test_what_ran_all_the_same_is_judged_and_never_passes() -> None:
    started, *rest = bodies(TWO)
    for ran in (rest, rest[:1], [rest[1]]):
        verdict = fold(entries([started, Postponed(BUSY, 1, 3), *ran]))
        assert verdict.postponed is None
        assert verdict.verdict == "UNJUDGED"
        assert verdict.of_kind("error")


def test_two_such_records_are_no_skip() -> None:
    verdict = night(1, Postponed(BUSY, 1, 3))
    assert verdict.postponed is None
    assert verdict.verdict == "UNJUDGED"
