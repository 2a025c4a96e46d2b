"""Progress of a run: what is running, the outcomes so far, and the approximate time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from acceptance.core.language import ENGLISH, Language
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import Outcome
from acceptance.reports.text import duration


def eta_s(plan: Plan) -> float:
    """Expected duration in seconds, all checks in sequence."""
    return sum(check.seconds for check in plan.checks)


class RunProgress:
    """Progress of a run, computed from its plan.

    A check that takes longer than planned adds nothing: the time left never grows.
    """

    def __init__(self, plan: Plan, now: Callable[[], float] = time.monotonic) -> None:
        self._checks = {check.id: check for check in plan.checks}
        self.total_s = eta_s(plan)
        self.outcomes: Counter[Outcome] = Counter()
        self._now = now
        self._began_s = now()
        self._done_s = 0.0
        self._running: tuple[str, float] | None = None

    def started(self, check: str) -> None:
        """Record the start of a check."""
        self._running = (check, self._now())

    def ended(self, check: str, outcome: Outcome) -> None:
        """Record the end of a check."""
        self._done_s += self._checks[check].seconds if check in self._checks else 0.0
        self.outcomes[outcome] += 1
        self._running = None

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
        check, began = self._running
        planned_s = self._checks[check].seconds if check in self._checks else 0.0
        return self._done_s + min(self._now() - began, planned_s)

    def time_left(self, language: Language = ENGLISH) -> str:
        """The approximate time left, in words."""
        return language("about {time} left", time=duration(max(0.0, self.total_s - self.done_s())))
