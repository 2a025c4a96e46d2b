"""A step of the power load: full load that comes and goes in one way, on some GPUs.

The load says each step on its stream before it begins, and the harness journals it: where the
machine goes down, the last record names the step.
"""

from __future__ import annotations

import math
from typing import Literal

from acceptance.core.message import Listed, english
from acceptance.core.parts import Component, Gpu
from acceptance.core.strict import Strict
from acceptance.loads.miscompare import UnusableLine

# "cold": idle, and then full load at once; "square": full load and none in turn, duty one half, all
# GPUs in phase; "anti_phase": the same, and every second GPU works while the others rest, so that
# the machine draws about the same all the time; "ramp": from idle to full load by stairs.
Kind = Literal["cold", "square", "anti_phase", "ramp"]
WAVES: tuple[Kind, ...] = ("square", "anti_phase")

LOWEST_HZ, HIGHEST_HZ = 0.1, 1000.0
LONGEST_S = 600.0
COLD_S = 5.0  # how long the GPUs of a cold step are idle before it
MOST_GPUS = 64


class Step(Strict, frozen=True):
    """One step: its kind, the GPUs that it loads, its length, and the frequency of a wave.

    Raises UnusableLine for a step on no GPU, on one twice or on something else, for a frequency
    where there is no wave and a wave without one, and for a step too short for its form.
    """

    kind: Kind
    gpus: tuple[Component, ...]
    seconds: float
    hertz: float | None = None

    def __post_init__(self) -> None:
        told = Listed(tuple(map(str, self.gpus[:MOST_GPUS])))
        known = all(isinstance(gpu, Gpu) for gpu in self.gpus)
        least = 2 if self.kind == "anti_phase" else 1
        if not known or not least <= len(set(self.gpus)) == len(self.gpus) <= MOST_GPUS:
            raise UnusableLine(
                english(
                    "load_step_gpus",
                    "a step of the power load is on GPUs, each once, and on two at least in "
                    'anti-phase, not on "{gpus}"',
                ),
                gpus=told,
            )
        if (self.kind in WAVES) != (self.hertz is not None) or not (
            self.hertz is None or LOWEST_HZ <= self.hertz <= HIGHEST_HZ
        ):
            raise UnusableLine(
                english(
                    "load_step_hertz", "{hertz} is no frequency of this step of the power load"
                ),
                hertz=repr(self.hertz),
            )
        if not self.least_s <= self.seconds <= LONGEST_S:
            raise UnusableLine(
                english(
                    "load_step_seconds",
                    "{seconds} s is too short or too long for this step of the power load",
                ),
                seconds=repr(self.seconds),
            )

    @property
    def least_s(self) -> float:
        """It must last at least so long: a whole turn of a wave, the idle time of a cold step."""
        if self.hertz is not None:
            return 1.0 / self.hertz
        return math.nextafter(COLD_S, math.inf) if self.kind == "cold" else 1.0
