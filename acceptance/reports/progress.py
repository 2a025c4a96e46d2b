"""Progress of a run: what is running, the outcomes so far, and the approximate time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping

from acceptance.core.collection import PHASES
from acceptance.core.language import ENGLISH, Language
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import Outcome
from acceptance.reports.text import duration, one_line


def eta_s(plan: Plan) -> float:
    """Expected duration in seconds: of each phase, that of its longer session."""
    return _whole_s(plan, {check.id: check.seconds for check in plan.checks})


def _whole_s(plan: Plan, seconds: Mapping[str, float]) -> float:
    """The sum over the phases, with these seconds of each check."""
    return sum(
        max(sum(seconds[check.id] for check in plan.share(session)) for session in phase)
        for phase in PHASES
    )


class RunProgress:
    """Progress of a run, computed from its plan. Checks of two sessions may run side by side.

    A check that takes longer than planned adds nothing: the time left never grows.
    """

    def __init__(self, plan: Plan, now: Callable[[], float] = time.monotonic) -> None:
        self._plan = plan
        self._left_s = {check.id: check.seconds for check in plan.checks}
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
        self._left_s[check] = 0.0
        self.outcomes[outcome] += 1
        self._running.pop(check, None)

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

    def left_s(self) -> float:
        """Seconds of the plan that are left."""
        left_s = dict(self._left_s)
        for check, began_s in self._running.items():
            left_s[check] = max(0.0, left_s.get(check, 0.0) - (self._now() - began_s))
        return _whole_s(self._plan, left_s)

    def done_s(self) -> float:
        """Seconds of the plan that are done."""
        return self.total_s - self.left_s()

    def time_left(self, language: Language = ENGLISH) -> str:
        """The approximate time left, in words."""
        return language("about {time} left", time=duration(self.left_s()))
