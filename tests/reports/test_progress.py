from __future__ import annotations

import journals

from acceptance.reports.progress import RunProgress


def test_time_left_is_reckoned_from_the_plan_and_never_grows() -> None:
    now = 0.0
    made = journals.plan(
        journals.check("a.one", seconds=100.0), journals.check("a.two", seconds=200.0)
    )
    remaining = RunProgress(made, lambda: now)
    assert (remaining.names(), remaining.time_left()) == ("", "about 5 min left")
    remaining.started("a.one")
    now = 40.0
    assert (remaining.names(), remaining.done_s()) == ("a.one", 40.0)
    now = 400.0  # longer than planned
    assert remaining.done_s() == 100.0
    remaining.ended("a.one", "pass")
    assert (remaining.names(), remaining.planned, remaining.done_s()) == ("", (), 100.0)
    remaining.started("a.two")
    now = 500.0
    assert remaining.time_left() == "about 100 s left"
    remaining.ended("a.two", "fail")
    remaining.ended("a.stranger", "fail")
    assert remaining.time_left() == "about 0 s left"
    assert (remaining.checks, remaining.elapsed_s()) == (2, 500.0)
    assert remaining.outcomes == {"pass": 1, "fail": 2}


def test_of_two_checks_side_by_side_the_longer_session_is_what_is_left() -> None:
    now = 0.0
    made = journals.plan(
        journals.check("g.one", session="gpu-load", seconds=100.0),
        journals.check("g.two", session="gpu-load", seconds=50.0),
        journals.check("h.one", session="host-load", seconds=120.0),
        journals.check("l.one", seconds=30.0),
    )
    remaining = RunProgress(made, lambda: now)
    assert remaining.total_s == 180.0
    remaining.started("g.one")
    now = 10.0
    remaining.started("h.one")
    assert remaining.names() == "g.one + h.one"
    assert [check.id for check in remaining.planned] == ["g.one", "h.one"]
    assert remaining.running_s() == 10.0
    now = 40.0
    assert remaining.left_s() == 110.0 + 30.0
    remaining.ended("g.one", "pass")  # sooner than planned
    assert remaining.names() == "h.one"
    assert remaining.left_s() == 90.0 + 30.0
    remaining.ended("h.one", "pass")
    assert remaining.left_s() == 50.0 + 30.0
    assert remaining.done_s() == 100.0
