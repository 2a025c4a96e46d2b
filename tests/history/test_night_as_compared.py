"""A night after one night and a comparison of the same two runs say the same.

Every measurement that a machine owes is played through both: equal values, and values further and
further to either side.
"""

from __future__ import annotations

import functools

import journals
import pytest
from drift_nights import BOOK

from acceptance.core.finding import Within
from acceptance.core.fold import fold
from acceptance.core.past import DriftJudgement
from acceptance.core.plan import Due
from acceptance.history import comparison
from acceptance.history.comparison import ComparedRun
from acceptance.history.reference_builder import NightValue, build_reference
from selftest import drawn_runs

FACTORS = (1.0, 0.999, 0.97, 0.9, 0.75, 0.512, 0.2, 1.001, 1.03, 1.1, 1.3, 2.0, 5.0)


@functools.cache
def owed() -> tuple[Due, ...]:
    """One component of every measurement of the machines."""
    found = {
        due.measurement: due
        for name in ("2x4090", "8xh200")
        for check in drawn_runs.named(name).plan.checks
        for due in check.due
    }
    return tuple(found.values())


def compared(due: Due, first: float, second: float) -> str:
    """What a comparison says of the second run."""
    plan = journals.plan(journals.check("a.one", due))
    runs = [
        ComparedRun(
            "run",
            fold(
                journals.entries(journals.bodies(plan, {(due.measurement, due.component): value}))
            ),
            "machine-1",
        )
        for value in (first, second)
    ]
    (row,) = comparison.compare(runs, BOOK).rows
    return row.kind if row.kind in ("worse", "changed") else "same"


def as_a_night(due: Due, first: float, second: float, *, baseline: bool) -> str:
    """What the second night says, with the first as its baseline or as a night."""
    rule = BOOK.rule(due.measurement, due.unit, due.limit, virtual=False)
    if rule is None:
        return "same"
    past = build_reference(
        [] if baseline else [NightValue(1.0, first)],
        first if baseline else None,
        baseline_day=1.0 if baseline else None,
        rule=rule,
        today=2.0,
    )
    said = past.judge(due.unit, second) if past else DriftJudgement()
    if not said.findings:
        return "same"
    assert past is not None
    return "worse" if past.decides else "changed"


def fails(due: Due, value: float) -> bool:
    return any(isinstance(one, Within) and one.limit.grade(value) == "fail" for one in due.criteria)


@pytest.mark.parametrize("baseline", [True, False], ids=["baseline", "night"])
def test_both_say_the_same_of_the_same_two_runs(baseline: bool) -> None:
    counts = dict.fromkeys(("worse", "changed", "same"), 0)
    for due in owed():
        if BOOK.counts(due.measurement):
            continue  # a comparison of two runs knows no rate
        for start in {journals.good_value(due), journals.good_value(due) * 1.5}:
            for factor in FACTORS:
                value = start * factor if start else factor - 1.0
                if fails(due, start) or fails(due, value):
                    continue  # the limit says it in both
                told = compared(due, start, value)
                night = as_a_night(due, start, value, baseline=baseline)
                assert night == told, (due.measurement, start, value)
                counts[told] += 1
    assert min(counts.values()) > 10, counts


def test_a_copy_half_as_fast_is_told_of_on_the_second_night() -> None:
    """A machine without a baseline said nothing of it before the fifth night."""
    due = next(due for due in owed() if due.measurement == "copy_own_h2d_bidirectional")
    assert compared(due, 50.0, 25.6) == "worse"
    assert as_a_night(due, 50.0, 25.6, baseline=False) == "worse"
    assert as_a_night(due, 50.0, 25.6, baseline=True) == "worse"
