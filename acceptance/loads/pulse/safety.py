"""When the power load stops by itself: a pure function of the last samples of its GPUs.

It never changes a limit or a clock, and resets nothing: it only ends the load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.clock_reasons import HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE, SW_THERMAL
from acceptance.core.message import Message, Quantity
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
        return Message("power_gpu_lost", {"gpu": gpu})
    last = samples[-1].readings
    before = samples[-2].readings if len(samples) > 1 else {}
    if any(math.isnan(last.get(name, math.nan)) for name in READINGS):
        return Message("power_gpu_unread", {"gpu": gpu})
    if last[POWER_BRAKE]:
        return Message("power_brake_pulled", {"gpu": gpu})
    if last[MARGIN] < MARGIN_C:
        return Message("power_too_hot", {"gpu": gpu, "margin": Quantity(last[MARGIN], "degC")})
    if any(last[name] and before.get(name) for name in HEAT):
        return Message("power_held_by_heat", {"gpu": gpu})
    if last[HW_SLOWDOWN] and before.get(HW_SLOWDOWN):
        return Message("power_slowed_down", {"gpu": gpu})
    return None
