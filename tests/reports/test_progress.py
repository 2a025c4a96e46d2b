from __future__ import annotations

import journals

from acceptance.reports.progress import RunProgress


def test_time_left_is_reckoned_from_the_plan_and_never_grows() -> None:
    now = 0.0
    made = journals.plan(
        journals.check("a.one", seconds=100.0), journals.check("a.two", seconds=200.0)
    )
    remaining = RunProgress(made, lambda: now)
    assert (remaining.check, remaining.time_left()) == (None, "about 5 min left")
    remaining.started("a.one")
    now = 40.0
    assert (remaining.check, remaining.done_s()) == ("a.one", 40.0)
    now = 400.0  # longer than planned
    assert remaining.done_s() == 100.0
    remaining.ended("a.one", "pass")
    assert (remaining.check, remaining.planned, remaining.done_s()) == (None, None, 100.0)
    remaining.started("a.two")
    now = 500.0
    assert remaining.time_left() == "about 100 s left"
    remaining.ended("a.two", "fail")
    remaining.ended("a.stranger", "fail")
    assert remaining.time_left() == "about 0 s left"
    assert (remaining.checks, remaining.elapsed_s()) == (2, 500.0)
    assert remaining.outcomes == {"pass": 1, "fail": 2}
