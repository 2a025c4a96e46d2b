"""Progress of a run: what is running, the outcomes so far, and the approximate time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from acceptance.core.language import ENGLISH, Language
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import Outcome
from acceptance.reports.text import duration

# Checks without a usual time are worth no word where they take no more than this share of a run.
SHORT = 0.05


def eta_s(plan: Plan) -> float:
    """Expected duration of the run in seconds, all checks in sequence."""
    return plan.overhead_s + sum(check.expected_s for check in plan.checks)


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

    While a check takes longer than expected, the time left stays the same.
    """

    def __init__(self, plan: Plan, now: Callable[[], float] = time.monotonic) -> None:
        self._checks = {check.id: check for check in plan.checks}
        self.total_s = eta_s(plan)
        self.outcomes: Counter[Outcome] = Counter()
        self._now = now
        self._began_s = now()
        self._done_s = 0.0
        self._checks_s = sum(check.expected_s for check in plan.checks)
        self._pace = Pace(self._checks_s)
        self._running: tuple[str, float] | None = None

    def started(self, check: str) -> None:
        """Record the start of a check."""
        self._running = (check, self._now())

    def ended(self, check: str, outcome: Outcome) -> None:
        """Record the end of a check."""
        if outcome in {"pass", "fail"}:  # a timeout or a skip says nothing of the pace
            self._pace.learn(self.running_s(), self._expected_s(check))
        self._done_s += self._expected_s(check)
        self.outcomes[outcome] += 1
        self._running = None

    def _expected_s(self, check: str) -> float:
        return self._checks[check].expected_s if check in self._checks else 0.0

    @property
    def check(self) -> str | None:
        """The running check; None between two checks."""
        return self._running[0] if self._running else None

    @property
    def planned(self) -> PlannedCheck | None:
        """The running check as planned; None between two checks."""
        return self._checks.get(self._running[0]) if self._running else None

    @property
    def checks(self) -> int:
        """The number of checks in the plan."""
        return len(self._checks)

    def elapsed_s(self) -> float:
        """Seconds since the run began."""
        return self._now() - self._began_s

    def running_s(self) -> float:
        """Seconds since the running check began; 0 between two checks."""
        return self._now() - self._running[1] if self._running else 0.0

    def done_s(self) -> float:
        """Seconds of the plan that are done."""
        if self._running is None:
            return self._done_s
        return self._done_s + min(self.running_s(), self._expected_s(self._running[0]))

    def left_s(self) -> float:
        """Expected seconds to the end of the run, at the pace of the checks that ended."""
        own_s = self._expected_s(self._running[0]) if self._running else 0.0
        left_s = max(0.0, self._checks_s - self._done_s - own_s) * self._pace.ratio
        left_s += max(0.0, own_s * self._pace.ratio - self.running_s())
        # the time between checks passes as they do
        return left_s * self.total_s / self._checks_s if self._checks_s else 0.0

    def time_left(self, language: Language = ENGLISH) -> str:
        """The approximate time left, in words."""
        return language("about {time} left", time=duration(self.left_s()))
