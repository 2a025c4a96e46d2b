from __future__ import annotations

import journals
import pytest
from cases import each
from msgspec.structs import replace

from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import Outcome
from acceptance.reports import languages
from acceptance.reports.progress import Pace, RunProgress, eta_s, time_basis

ONE, TWO = journals.check("a.one", seconds=100.0), journals.check("a.two", seconds=200.0)


class Clocked(RunProgress):
    """The progress of a run whose clock a test moves."""

    def __init__(self, *checks: PlannedCheck, **plan: float) -> None:
        self.now = 0.0
        super().__init__(replace(journals.plan(*checks), **plan), lambda: self.now)

    def play(self, *steps: tuple[float, str | None, Outcome | None]) -> Clocked:
        """At each moment a check starts, or ends with its outcome; or nothing happens."""
        for moment, check, outcome in steps:
            self.now = moment
            if outcome is not None:
                self.ended(str(check), outcome)
            elif check is not None:
                self.started(check)
        return self


def test_time_left_is_reckoned_from_the_plan() -> None:
    remaining = Clocked(ONE, TWO)
    assert (remaining.names(), remaining.time_left()) == ("", "about 5 min left")
    remaining.play((0.0, "a.one", None), (40.0, None, None))
    assert (remaining.names(), remaining.done_s(), remaining.left_s()) == ("a.one", 40.0, 260.0)
    remaining.play((100.0, "a.one", "pass"))
    assert (remaining.names(), remaining.planned, remaining.done_s()) == ("", (), 100.0)
    assert remaining.left_s() == 200.0
    remaining.play((100.0, "a.two", None), (200.0, None, None))
    assert remaining.time_left() == "about 100 s left"
    remaining.play((300.0, "a.two", "fail"), (300.0, "a.stranger", "fail"))
    assert remaining.time_left() == "about 0 s left"
    assert (remaining.checks, remaining.elapsed_s()) == (2, 300.0)
    assert remaining.outcomes == {"pass": 1, "fail": 2}


BEGUN = (0.0, "a.one", None)
# 150 s for 100, beside 50 s that count as done as expected: a sixth of the plan
SLOWER = 200.0 * 200.0 / 150.0


@each(
    "steps, plan, left_s",
    [
        ([BEGUN, (100.0, None, None)], {}, 200.0),
        ([BEGUN, (400.0, None, None)], {}, 200.0),
        ([BEGUN, (150.0, "a.one", "pass")], {}, SLOWER),
        (
            [BEGUN, (150.0, "a.one", "pass"), (150.0, "a.two", None), (250.0, None, None)],
            {},
            SLOWER - 100.0,
        ),
        *(([BEGUN, (900.0, "a.one", outcome)], {}, 200.0) for outcome in ("error", "skip")),
        ([], {"overhead_s": 30.0}, 330.0),
        ([BEGUN, (100.0, "a.one", "pass")], {"overhead_s": 30.0}, 220.0),
    ],
    told=[
        *("as expected", "it stays while a check takes longer", "the pace counts for the rest"),
        *("and in it", "an error does not change the pace", "nor does a skip"),
        *("the time between checks", "passes as they do"),
    ],
)
def test_the_time_that_is_left(
    steps: list[tuple[float, str | None, Outcome | None]], plan: dict[str, float], left_s: float
) -> None:
    assert Clocked(ONE, TWO, **plan).play(*steps).left_s() == pytest.approx(left_s)


def test_a_few_short_checks_do_not_show_the_pace() -> None:
    pace = Pace(600.0)
    pace.learn(2.0, 0.1)
    assert pace.ratio == pytest.approx(1.02, abs=0.002)
    pace.learn(300.0, 200.0)
    assert pace.ratio == pytest.approx(402.0 / 300.1)


USUAL = replace(ONE, usual_s=90.0)
MEASURED = replace(journals.plan(USUAL, replace(TWO, usual_s=210.0)), timed_runs=3)
SHORT = journals.check("a.short", seconds=1.0)


@each(
    "plan, seconds, basis",
    [
        (journals.plan(ONE, TWO), 300.0, "calculated"),
        (MEASURED, 300.0, "by this machine's last 3 runs"),
        (
            replace(MEASURED, checks=(*MEASURED.checks, SHORT)),
            301.0,
            "by this machine's last 3 runs",
        ),
        (
            replace(journals.plan(USUAL, TWO), timed_runs=3),
            290.0,
            "in part by this machine's last 3 runs",
        ),
    ],
)
def test_a_plan_says_where_its_time_comes_from(plan: Plan, seconds: float, basis: str) -> None:
    assert (eta_s(plan), time_basis(plan)) == (seconds, basis)
    assert time_basis(MEASURED, languages.language("zh-CN")) == "按本机最近 3 次运行"


def test_of_two_checks_side_by_side_the_longer_session_is_what_is_left() -> None:
    remaining = Clocked(
        journals.check("g.one", session="gpu-load", seconds=100.0),
        journals.check("g.two", session="gpu-load", seconds=50.0),
        journals.check("h.one", session="host-load", seconds=120.0),
        journals.check("l.one", seconds=30.0),
    )
    assert remaining.total_s == 180.0
    remaining.play((0.0, "g.one", None), (10.0, "h.one", None))
    assert (remaining.names(), remaining.running_s()) == ("g.one + h.one", 10.0)
    assert [check.id for check in remaining.planned] == ["g.one", "h.one"]
    assert remaining.play((40.0, None, None)).left_s() == 110.0 + 30.0
    remaining.play((100.0, "g.one", "pass"))
    assert (remaining.names(), remaining.left_s()) == ("h.one", 50.0 + 30.0)
    remaining.play((130.0, "h.one", "pass"))
    assert (remaining.left_s(), remaining.done_s()) == (50.0 + 30.0, 100.0)
