"""The watchdog of the power load: a file that the watch over the GPUs keeps fresh, or writes into.

A load with a watchdog ends by itself where the file is old: a watch that hangs with a lost GPU
stops the load too. Fail closed, without a channel from one to the other. In asks and journals the
file is the load's `leash`.

The file's time is that of the monotonic clock, which all processes of the machine share: the wall
clock may be set at any moment.

When the power load stops by itself: a pure function of the last samples of its GPUs.

It never changes a limit or a clock, and resets nothing: it only ends the load.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.clock_reasons import HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE, SW_THERMAL
from acceptance.core.message import Message, Quantity, english
from acceptance.core.parts import Component

# A GPU slows itself down where its margin is used up; the load ends before that. With more margin
# the burn passes too: it is the limit of `gpu_temperature_margin`.
MARGIN_C = 1.0
SILENT_S = 3.0  # a GPU that was not sampled for so long counts as lost
MARGIN = "temperature_margin_c"
HEAT = (HW_THERMAL, SW_THERMAL)
READINGS = (POWER_BRAKE, HW_SLOWDOWN, *HEAT, MARGIN)


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sample of a GPU: its readings, by the names of the journal's samples, and its age."""

    readings: Mapping[str, float]
    age_s: float


def reason_to_stop(samples: Mapping[Component, Sequence[Sampled]]) -> Message | None:
    """Why the load must end now; None where all of its GPUs may go on.

    `samples` has the last samples of every GPU of the load, the newest last; none of one that is
    lost. What a GPU does not say stops the load too: it could not be seen to be safe. A slowdown
    counts from its second sample in a row: sound GPUs show one alone at the edge of a load (DCGM
    issue 242). A power brake counts at once.
    """
    found = (_reason(str(gpu), own) for gpu, own in samples.items())
    return next(filter(None, found), None)


def _reason(gpu: str, samples: Sequence[Sampled]) -> Message | None:
    if not samples or not abs(samples[-1].age_s) <= SILENT_S:
        return Message(
            english("power_gpu_lost", "the power load was ended: {gpu} no longer answers"),
            {"gpu": gpu},
        )
    last = samples[-1].readings
    before = samples[-2].readings if len(samples) > 1 else {}
    if any(math.isnan(last.get(name, math.nan)) for name in READINGS):
        return Message(
            english(
                "power_gpu_unread",
                "the power load was ended: {gpu} does not say its temperature margin and what "
                "slows it down, so that nobody would see it in danger",
            ),
            {"gpu": gpu},
        )
    if last[POWER_BRAKE]:
        return Message(
            english(
                "power_brake_pulled", "the power load was ended: {gpu} reports the power brake"
            ),
            {"gpu": gpu},
        )
    if last[MARGIN] < MARGIN_C:
        return Message(
            english(
                "power_too_hot",
                "the power load was ended: {gpu} is only {margin} below the temperature at which "
                "it slows down",
            ),
            {"gpu": gpu, "margin": Quantity(last[MARGIN], "degC")},
        )
    if any(last[name] and before.get(name) for name in HEAT):
        return Message(
            english("power_held_by_heat", "the power load was ended: {gpu} is slowed down by heat"),
            {"gpu": gpu},
        )
    if last[HW_SLOWDOWN] and before.get(HW_SLOWDOWN):
        return Message(
            english("power_slowed_down", "the power load was ended: the hardware slows {gpu} down"),
            {"gpu": gpu},
        )
    return None


STOPPED = "the watch over the GPUs has stopped the load"
# Without persistence mode the driver first initialises every GPU, which takes some seconds each.
TAKEN_S = 30.0
UNWATCHED = f"nothing has watched the GPUs for {SILENT_S:g} s"


class Holder:
    """The end that the watch holds."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self) -> None:
        """Begin: the watchdog is fresh."""
        self._path.write_bytes(b"")
        self._stamp()

    def keep(self) -> bool:
        """All is well at this moment; whether the load still wears it."""
        try:
            self._stamp()
        except FileNotFoundError:
            return False
        return True

    def _stamp(self) -> None:
        now_ns = time.monotonic_ns()
        os.utime(self._path, ns=(now_ns, now_ns))

    def pull(self) -> None:
        """End the load, now and for good."""
        self._path.write_text("stop\n", encoding="utf-8")


class Watchdog:
    """The end that the load wears; `path` is None for a load that is not watched."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def reason(self) -> str | None:
        """Why the load must end now; None where it may go on."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return UNWATCHED
        if found.st_size:
            return STOPPED
        return UNWATCHED if not abs(time.monotonic() - found.st_mtime) <= SILENT_S else None

    def wait(self, within_s: float = TAKEN_S) -> None:
        """Return once the watch has taken it, or after so long: then the first step ends soon."""
        end_s = time.monotonic() + within_s
        while self.reason() == UNWATCHED and time.monotonic() < end_s:
            time.sleep(0.05)

    def drop(self) -> None:
        """The load has made its last step: nobody need watch any more."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
