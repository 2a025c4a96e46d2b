"""Progress of a run: what is running, the outcomes so far, and the approximate time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from acceptance.core.language import ENGLISH, Language
from acceptance.core.plan import PHASES, Plan, PlannedCheck
from acceptance.core.record import Outcome
from acceptance.reports.text import duration, one_line

# Checks without a usual time are worth no word where they take no more than this share of a run.
SHORT = 0.05


def eta_s(plan: Plan) -> float:
    """Expected duration of the run in seconds: of each phase that of its longer session."""
    return plan.overhead_s + _whole_s(plan, _expected_s(plan))


def _expected_s(plan: Plan) -> dict[str, float]:
    return {check.id: check.expected_s for check in plan.checks}


def _whole_s(plan: Plan, seconds: Mapping[str, float]) -> float:
    """The sum over the phases, with these seconds of each check."""
    return sum(
        max(sum(seconds[check.id] for check in plan.share(session)) for session in phase)
        for phase in PHASES
    )


def time_basis(plan: Plan, language: Language = ENGLISH) -> str:
    """Where the expected duration comes from, in words that follow it.

    Checks without a usual time need not be named where all of them are short.
    """
    if not plan.timed_runs:
        return language("calculated")
    calculated_s = sum(check.seconds for check in plan.checks if check.usual_s is None)
    if calculated_s <= SHORT * eta_s(plan):
        return language("by this machine's last {n} runs", n=plan.timed_runs)
    return language("in part by this machine's last {n} runs", n=plan.timed_runs)


class Pace:
    """How many seconds an expected second takes, by the checks that ended.

    `whole_s` is the expected time of all checks. A part of it counts as done at the expected pace,
    beside what was done: a few short checks do not show the pace of the rest.
    """

    TRUST = 1 / 6  # that part; with a sixth, the recorded runs come out best

    def __init__(self, whole_s: float) -> None:
        self._took_s = self._expected_s = max(self.TRUST * whole_s, 1.0)

    def learn(self, took_s: float, expected_s: float) -> None:
        """Add a check that ended."""
        self._took_s += took_s
        self._expected_s += expected_s

    @property
    def ratio(self) -> float:
        """Seconds for each expected second."""
        return self._took_s / self._expected_s


class RunProgress:
    """Progress of a run, computed from its plan and from how long the checks took that ended.

    Checks of two sessions may run side by side. While a check takes longer than expected, the time
    left of its session stays the same.
    """

    def __init__(self, plan: Plan, now: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan
        self._ahead_s = _expected_s(plan)  # of each check, 0 once it has ended
        self._checks_s = _whole_s(plan, self._ahead_s)
        self._pace = Pace(self._checks_s)
        self.total_s = eta_s(plan)
        self.outcomes: Counter[Outcome] = Counter()
        self._now = now
        self._began_s = now()
        self._running: dict[str, float] = {}  # when each running check began

    def started(self, check: str) -> None:
        """Record the start of a check."""
        self._running[check] = self._now()

    def ended(self, check: str, outcome: Outcome) -> None:
        """Record the end of a check."""
        expected_s = self._ahead_s.get(check, 0.0)
        began_s = self._running.pop(check, None)
        # a timeout or a skip says nothing of the pace
        if began_s is not None and outcome in {"pass", "fail"}:
            self._pace.learn(self._now() - began_s, expected_s)
        self._ahead_s[check] = 0.0
        self.outcomes[outcome] += 1

    def names(self) -> str:
        """The running checks, in one line; empty between two checks."""
        return " + ".join(map(one_line, self._running))

    @property
    def planned(self) -> tuple[PlannedCheck, ...]:
        """The running checks as planned."""
        return tuple(check for check in self._plan.checks if check.id in self._running)

    @property
    def checks(self) -> int:
        """The number of checks in the plan."""
        return len(self._plan.checks)

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self._now() - self._began_s

    def running_s(self) -> float:
        """Seconds since the first of the running checks began; 0 between two checks."""
        return self._now() - min(self._running.values()) if self._running else 0.0

    def done_s(self) -> float:
        """Seconds of the plan that are done."""
        return self.total_s - self._left_s(1.0)

    def left_s(self) -> float:
        """Expected seconds to the end of the run, at the pace of the checks that ended."""
        return self._left_s(self._pace.ratio)

    def _left_s(self, pace: float) -> float:
        ahead_s = {check: own_s * pace for check, own_s in self._ahead_s.items()}
        for check, began_s in self._running.items():
            ahead_s[check] = max(0.0, ahead_s.get(check, 0.0) - (self._now() - began_s))
        # the time between checks passes as they do
        share = self.total_s / self._checks_s if self._checks_s else 0.0
        return _whole_s(self._plan, ahead_s) * share

    def time_left(self, language: Language = ENGLISH) -> str:
        """The approximate time left, in words."""
        return language("about {time} left", time=duration(self.left_s()))
