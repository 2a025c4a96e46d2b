from __future__ import annotations

import journals
import pytest
from cases import each
from msgspec.structs import replace

from acceptance.core.record import Outcome
from acceptance.reports import languages
from acceptance.reports.progress import Pace, RunProgress, eta_s, time_basis

ONE, TWO = journals.check("a.one", seconds=100.0), journals.check("a.two", seconds=200.0)


def test_time_left_is_reckoned_from_the_plan() -> None:
    now = 0.0
    remaining = RunProgress(journals.plan(ONE, TWO), lambda: now)
    assert (remaining.names(), remaining.time_left()) == ("", "about 5 min left")
    remaining.started("a.one")
    now = 40.0
    assert (remaining.names(), remaining.done_s()) == ("a.one", 40.0)
    assert remaining.left_s() == 260.0
    now = 100.0
    remaining.ended("a.one", "pass")
    assert (remaining.names(), remaining.planned, remaining.done_s()) == ("", (), 100.0)
    assert remaining.left_s() == 200.0
    remaining.started("a.two")
    now = 200.0
    assert remaining.time_left() == "about 100 s left"
    now = 300.0
    remaining.ended("a.two", "fail")
    remaining.ended("a.stranger", "fail")
    assert remaining.time_left() == "about 0 s left"
    assert (remaining.checks, remaining.elapsed_s()) == (2, 300.0)
    assert remaining.outcomes == {"pass": 1, "fail": 2}


def test_the_time_left_stays_while_a_check_takes_longer_than_expected() -> None:
    now = 0.0
    remaining = RunProgress(journals.plan(ONE, TWO), lambda: now)
    remaining.started("a.one")
    now = 100.0
    assert (remaining.done_s(), remaining.left_s()) == (100.0, 200.0)
    now = 400.0
    assert (remaining.done_s(), remaining.left_s()) == (100.0, 200.0)


def test_the_pace_of_what_ended_counts_for_the_rest() -> None:
    now = 0.0
    remaining = RunProgress(journals.plan(ONE, TWO), lambda: now)
    remaining.started("a.one")
    now = 150.0
    remaining.ended("a.one", "pass")
    # 150 s for 100, beside 50 s that count as done as expected: a sixth of the plan
    assert remaining.left_s() == pytest.approx(200.0 * 200.0 / 150.0)
    remaining.started("a.two")
    now = 250.0
    assert remaining.left_s() == pytest.approx(200.0 * 200.0 / 150.0 - 100.0)


@each("outcome", ["error", "skip"])
def test_a_check_that_was_not_done_does_not_change_the_pace(outcome: Outcome) -> None:
    now = 0.0
    remaining = RunProgress(journals.plan(ONE, TWO), lambda: now)
    remaining.started("a.one")
    now = 900.0
    remaining.ended("a.one", outcome)
    assert remaining.left_s() == 200.0


def test_the_time_between_checks_passes_as_they_do() -> None:
    now = 0.0
    made = replace(journals.plan(ONE, TWO), overhead_s=30.0)
    remaining = RunProgress(made, lambda: now)
    assert remaining.left_s() == remaining.total_s == eta_s(made) == 330.0
    remaining.started("a.one")
    now = 100.0
    remaining.ended("a.one", "pass")
    assert remaining.left_s() == pytest.approx(220.0)


def test_a_few_short_checks_do_not_show_the_pace() -> None:
    pace = Pace(600.0)
    pace.learn(2.0, 0.1)
    assert pace.ratio == pytest.approx(1.02, abs=0.002)
    pace.learn(300.0, 200.0)
    assert pace.ratio == pytest.approx(402.0 / 300.1)


def test_usual_times_replace_the_calculated_ones() -> None:
    assert eta_s(journals.plan(replace(ONE, usual_s=40.0), TWO)) == 240.0


def test_a_plan_says_where_its_time_comes_from() -> None:
    calculated = journals.plan(ONE, TWO)
    measured = replace(
        journals.plan(replace(ONE, usual_s=90.0), replace(TWO, usual_s=210.0)), timed_runs=3
    )
    partly = replace(journals.plan(replace(ONE, usual_s=90.0), TWO), timed_runs=3)
    short = journals.check("a.short", seconds=1.0)
    nearly = replace(measured, checks=(*measured.checks, short))
    assert time_basis(calculated) == "calculated"
    assert time_basis(measured) == time_basis(nearly) == "by this machine's last 3 runs"
    assert time_basis(partly) == "in part by this machine's last 3 runs"
    assert time_basis(measured, languages.language("zh-CN")) == "按本机最近 3 次运行"


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
    now = 100.0
    remaining.ended("g.one", "pass")
    assert remaining.names() == "h.one"
    assert remaining.left_s() == 50.0 + 30.0
    now = 130.0
    remaining.ended("h.one", "pass")
    assert remaining.left_s() == 50.0 + 30.0
    assert remaining.done_s() == 100.0
