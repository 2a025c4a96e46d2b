"""Nights of one sound machine over a year, drawn: the real plan's values with what moves them from night to night.

A night has a part of the noise in common for both its looks, and each look its own. The room is warmer in summer and on working days, and
wanders between; heat makes GPUs a little slower. Some parts are noisier than others of their kind, some looks stray, and on a few nights
a year something else runs on the processor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from acceptance import fixtures
from acceptance.judge import noise
from acceptance.judge.plan import Due
from selftest.journals_made import Key, Machine, Values, derived, figures

YEAR = 365
# Half of the variance is the night's, half the look's: assumed, the recorded runs show each card once or twice.
NIGHT_SHARE = math.sqrt(0.5)
LOOK_SHARE = math.sqrt(0.5)
# One part in six is 1.4 times as noisy as its kind, or 0.7 times: assumed.
UNLIKE = 0.35
# One look in two hundred strays three times as far: assumed.
STRAY, FAR = 0.005, 3.0
# degC: a machine room over the year, on working days, and what wanders from day to day. Assumed.
SEASON, WORKDAY, WANDER, KEEPS = 3.0, 1.0, 0.5, 0.7
# What a degree of the room does: to temperatures a degree, to sustained rates of GPUs a twentieth of a per cent (assumed: a chip that is at
# its power limit leaks about half a per cent more power per degree, and rate follows power less than by the root).
HEAT_RATE = -0.0005
HEAT = {"gpu_temperature": 1.0, "gpu_memory_temperature": 1.0, "gpu_temperature_margin": -1.0, "cpu_temperature": 1.0}
TEMPERATURE = 1.5  # degC from night to night beside the room's; one card showed 62 and 65 in two runs
OTHER_LOAD = 4.0 / YEAR  # nights on which something else runs on the host: assumed
OTHER_TAKES = (0.05, 0.2)

# How a fault changes the sound value of a look: check, due, value, night, and a die for what comes and goes.
Decay = Callable[[Key, Due, float, int, random.Random], float]


@dataclass(frozen=True, slots=True)
class Night:
    """One night's two looks; the second is taken only where the first asks for it."""

    day: int
    first: Values
    second: Values


@dataclass(frozen=True, slots=True)
class Moved:
    """How one figure moves: its middle, one deviation from night to night in its unit, what a degree of the room adds."""

    due: Due
    middle: float
    deviation: float
    heat: float
    host: bool


def moves(machine: Machine, dice: random.Random) -> dict[Key, Moved]:
    """The figures of one machine of this kind; each part has a noise of its own."""
    book = noise.read(fixtures.locate("noise.toml"))
    found = {}
    for key, due, middle, deviation in figures(machine):
        own = _deviation(machine, due, middle, deviation, book) * math.exp(dice.gauss(0.0, UNLIKE))
        heat = HEAT.get(due.measurement, HEAT_RATE * middle if _sustained(due) else 0.0)
        found[key] = Moved(due, middle, own, heat, _of_host(due))
    return found


def _deviation(machine: Machine, due: Due, middle: float, drawn: float, book: noise.NoiseBook) -> float:
    """What one night differs from the next by: as runs of equal parts do where that was measured, else a quarter of the general spread."""
    if due.unit == "degC" and "spread" not in due.measurement:
        return TEMPERATURE
    if drawn or due.unit in ("count", "s"):
        return drawn if due.unit != "count" else 0.0
    return 0.25 * book.spread(due.measurement, due.unit, same_part=True, virtual=machine.virtual).between(middle, 0.0)


def _sustained(due: Due) -> bool:
    return due.unit == "TFLOP/s" and not due.measurement.endswith("_short")


def _of_host(due: Due) -> bool:
    host = ("memory_", "cpu_gemm_f", "stressapptest_copy")
    return due.unit in ("GB/s", "GFLOP/s") and (due.measurement.startswith(host) or "pageable" in due.measurement)


def year(
    machine: Machine,
    dice: random.Random,
    nights: int,
    decay: Decay | None = None,
    known: Mapping[Key, Moved] | None = None,
) -> Iterator[Night]:
    """So many nights of one machine from a random day of the year on, with a fault where there is one."""
    every = known if known is not None else moves(machine, dice)
    begin, wander = dice.randrange(YEAR), 0.0
    for night in range(nights):
        wander = KEEPS * wander + dice.gauss(0.0, WANDER * math.sqrt(1 - KEEPS**2))
        room = SEASON * math.sin(2 * math.pi * (begin + night) / YEAR) + WORKDAY * ((begin + night) % 7 < 5) + wander
        taken = dice.uniform(*OTHER_TAKES) if dice.random() < OTHER_LOAD else 0.0
        first: Values = {}
        second: Values = {}
        for key, one in every.items():
            own = NIGHT_SHARE * one.deviation * dice.gauss(0.0, 1.0) if one.deviation else 0.0
            for look in (first, second):
                value = one.middle + one.heat * room + own
                if one.deviation:
                    far = FAR if dice.random() < STRAY else 1.0
                    value += LOOK_SHARE * far * one.deviation * dice.gauss(0.0, 1.0)
                if one.host:
                    value *= 1.0 - taken
                look[key] = decay(key, one.due, value, night, dice) if decay is not None else value
        yield Night(night, derived(machine, first), derived(machine, second))
