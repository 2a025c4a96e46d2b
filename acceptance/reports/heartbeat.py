"""Heartbeat lines for a log: one a minute during a long check, with the live view's values."""

from __future__ import annotations

import time
from collections.abc import Callable

from acceptance.core.language import Language
from acceptance.reports import panel
from acceptance.reports.gauges import Gauges
from acceptance.reports.progress import RunProgress
from acceptance.reports.text import Glyphs

EVERY_S = 60.0
LATER_S = 600.0  # in a check of more than an hour, so that a log of days stays readable
_HOUR_S = 3600.0
_FEW = 2  # GPUs; up to this many are listed one by one


class Heartbeat:
    """The heartbeat of a run; `line` returns the next line once it is due."""

    def __init__(
        self,
        remaining: RunProgress,
        gauges: Gauges,
        language: Language,
        signs: Glyphs,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._remaining, self._gauges, self._language, self._signs, self._now_s = (
            remaining,
            gauges,
            language,
            signs,
            now_s,
        )
        self._told_s = now_s()

    def reset(self) -> None:
        """Restart the interval, because something else was printed."""
        self._told_s = self._now_s()

    def line(self) -> str | None:
        """The line if it is due, else None."""
        check, running_s = self._remaining.names(), self._remaining.running_s()
        every_s = EVERY_S if running_s < _HOUR_S else LATER_S
        if not check or self._now_s() - self._told_s < every_s:
            return None
        self.reset()
        language, signs, gauges = self._language, self._signs, self._gauges.gauges()
        words = [self._remaining.time_left(language)]
        if gauges:
            few = len(gauges) <= _FEW
            parts = (
                panel.gpu_parts(gauges, language, signs)
                if few
                else panel.summary_parts(gauges, language, signs)
            )
        else:
            parts = panel.machine(self._gauges.machine, language, signs)
        words += [part.plain for part in parts]
        return f"...    {check:<26}  {running_s:6.0f} s  {'; '.join(words)}"
