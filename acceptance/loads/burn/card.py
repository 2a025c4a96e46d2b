"""The GPU's clock for the burn, with a limit on every wait.

A GPU that does not answer is reported. Needs torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from acceptance.loads.card import CardError, CudaCard

HANG_S = 60.0  # many times what the slowest product of the slowest card takes
_LONGEST_PAUSE_S = 0.002


def boot_s() -> float:
    """Seconds since boot, the clock that telemetry uses too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait(
    done: Callable[[], bool], within_s: float = HANG_S, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when `done` is true.

    Raises CardError after `within_s` seconds: the GPU hangs.
    """
    end, pause = time.monotonic() + within_s, 1e-4
    while not done():
        if time.monotonic() > end:
            raise CardError(
                f"the GPU has not finished what it was given within {within_s:g} s: it hangs"
            )
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


class PatientCard(CudaCard):
    """CUDA device 0, with a limit on the wait for a mark."""

    def reach(self, mark: Any) -> None:
        """Wait for a mark. Raises CardError where the GPU hangs."""
        wait(mark.query)

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the GPU's clock; waits for the later one as `reach` does."""
        self.reach(end)
        return float(begin.elapsed_time(end)) / 1e3
