"""The moving line of a terminal: which check is running, and about how long the run still takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from acceptance.judge.plan import Plan
from acceptance.reports.text import duration, one_line

_WIDTH = 60  # columns for the name of what is running: the line is drawn over, so it must stay one line


class Remaining:
    """How far a run is, reckoned from its plan. A check that takes longer than planned holds the clock: time left never grows."""

    def __init__(self, plan: Plan, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = {check.id: check.seconds for check in plan.checks}
        self._total = plan.eta_s()
        self._now = now
        self._done_s = 0.0
        self._running: tuple[str, float] | None = None

    def started(self, check: str) -> None:
        """A check has begun."""
        self._running = (check, self._now())

    def ended(self, check: str) -> None:
        """A check has ended."""
        self._done_s += self._seconds.get(check, 0.0)
        self._running = None

    @property
    def check(self) -> str:
        """What is running now."""
        return self._running[0] if self._running else "between two checks"

    def done_s(self) -> float:
        """Seconds of the plan that are over."""
        if self._running is None:
            return self._done_s
        check, began = self._running
        return self._done_s + min(self._now() - began, self._seconds.get(check, 0.0))

    def left(self) -> str:
        """What is still to come, for people."""
        return f"about {duration(max(0.0, self._total - self.done_s()))} left"


class Live(Progress):
    """The line itself, drawn anew several times a second, whether or not anything was journalled."""

    def __init__(self, console: Console, plan: Plan, remaining: Remaining) -> None:
        self._remaining = remaining
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.add_task(self._name(), total=plan.eta_s(), left=remaining.left())

    def _name(self) -> str:
        """What is running. A session's journal says it, and rich would send its escape sequences on to the terminal."""
        return one_line(self._remaining.check, _WIDTH)

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is drawn; asked for at each refresh."""
        if self.task_ids:
            now = self._remaining
            self.update(self.task_ids[0], description=self._name(), completed=now.done_s(), left=now.left())
        return super().get_renderables()
