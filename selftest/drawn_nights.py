"""Nights of one sound machine, drawn: the real plan's values with what moves them from night to
night.

Pure.

A night has a part of the noise in common for both its looks, and each look its own. The room is
warmer in summer and on working days, and wanders between; heat makes GPUs a little slower. Some
parts are noisier than others of their kind, some looks stray, counters count, and on a few nights a
year something else runs on the host.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from acceptance import resources
from acceptance.core.plan import Due
from acceptance.history import noise
from acceptance.history.noise import NoiseBook
from selftest.drawn_runs import Key, Machine, Values, derived, figures

YEAR = 365
# Half of the variance is the night's and half the look's: assumed, the recorded runs show each card
# once or twice.
NIGHT_SHARE = LOOK_SHARE = math.sqrt(0.5)
# One part in six is 1.4 times as noisy as its kind, and as many 0.7 times: assumed.
UNLIKE = 0.35
# One look in two hundred strays three times as far: assumed.
STRAY, FAR = 0.005, 3.0
# One card's rates of sustained products from night to night, as a share: one card in two recorded
# runs showed 0.05 to 0.45 % in seven formats, a deviation of 0.22 %; twice that and more is drawn.
# `as_cards` draws what lies between cards instead, which is 0.8 % (`selftest.noise`).
ONE_CARD = 0.005
# What differs from run to run where nobody measured it: this share of noise.toml's spread, which is
# some four deviations wide.
OF_SPREAD = 0.25
# degC: a machine room over the year to either side, on working days, and what wanders from day to
# day. Assumed.
SEASON, WORKDAY, WANDER, KEEPS = 3.0, 1.0, 0.5, 0.7
# What a degree of the room does: to temperatures a degree, to sustained rates of GPUs a twentieth
# of a per cent (assumed: at its power limit a chip leaks about half a per cent more for each
# degree, and its rate follows power less than by the root).
HEAT_RATE = -0.0005
HEAT = {
    "gpu_temperature": 1.0,
    "gpu_memory_temperature": 1.0,
    "gpu_temperature_margin": -1.0,
    "cpu_temperature": 1.0,
}
TEMPERATURES = {
    "gpu_temperature": 64.0,
    "gpu_memory_temperature": 75.0,
}  # degC; recorded H200 runs: 61 to 67
# DegC from night to night beside the room's; one card showed 62 and 65 in two runs.
TEMPERATURE = 1.5
# Nights of a year on which something else runs on the host, and the shares that it takes of what
# the host does: assumed.
OTHER_NIGHTS, OTHER_TAKES = 4.0, (0.05, 0.2)
# What counters of sound parts grow by in a night on the average: assumed.
GROWS = {"gpu_ecc_corrected_total": 0.2, "gpu_pcie_replays_total": 2.0}
WEARS = 0.05 / YEAR  # of a disk's rated life a night, counted in whole per cent

# How a fault changes the sound value of a look: check, due, value, night, and a die for what comes
# and goes.
Decay = Callable[[Key, Due, float, int, random.Random], float]


@dataclass(frozen=True, slots=True)
class Night:
    """One night's two looks; the second is taken only where the first asks for it."""

    day: int
    first: Values
    second: Values


@dataclass(frozen=True, slots=True)
class Moved:
    """How one figure moves: its middle, one deviation from night to night in its unit, what a
    degree of the room adds, what it grows by.

    `host`: it is slower when something else runs on the host.
    """

    due: Due
    middle: float
    deviation: float
    heat: float
    grows: float
    host: bool

    @property
    def still(self) -> bool:
        """Whether it is the same every night."""
        return not (self.deviation or self.heat or self.grows)


def moves(machine: Machine, dice: random.Random, *, as_cards: bool = False) -> dict[Key, Moved]:
    """The figures of one machine of this kind; each part has a noise of its own.

    `as_cards`: nights differ as much as cards do.
    """
    book = noise.read(resources.locate("noise.toml"))
    found, own = {}, _own_dice(dice)
    for key, due, middle, between in figures(machine):
        drawn = ONE_CARD * middle if _sustained(due) and machine.board and not as_cards else between
        found[key] = _moved(machine, due, middle, drawn, book, own(key))
    return found


def _own_dice(dice: random.Random) -> Callable[[Key], random.Random]:
    """Dice of each figure's own, so that what one does depends on no other: a new measurement
    draws the others as before.
    """
    seed = dice.random()
    return lambda key: random.Random(f"{seed} {key}")


def _sustained(due: Due) -> bool:
    return (
        due.unit == "TFLOP/s"
        and due.measurement.startswith(("gemm_", "burn_"))
        and not due.measurement.endswith("_short")
    )


def _moved(
    machine: Machine, due: Due, middle: float, drawn: float, book: NoiseBook, dice: random.Random
) -> Moved:
    name = due.measurement
    middle = TEMPERATURES.get(name, middle)
    grows = WEARS if name == "disk_wear" else GROWS.get(name, 0.0)
    if grows:
        return Moved(due, 0.0, 0.0, 0.0, grows, host=False)
    heat = HEAT.get(name, HEAT_RATE * middle if _sustained(due) else 0.0)
    deviation = _deviation(machine, due, middle, drawn, book) * math.exp(dice.gauss(0.0, UNLIKE))
    host = name.startswith(("memory_", "cpu_gemm_f", "stressapptest_copy")) or "pageable" in name
    return Moved(due, middle, deviation, heat, 0.0, host and due.unit in ("GB/s", "GFLOP/s"))


def _deviation(machine: Machine, due: Due, middle: float, drawn: float, book: NoiseBook) -> float:
    """What one night differs from the next by: as runs of equal parts do where that was
    measured, else a share of the general spread.
    """
    if due.measurement in HEAT:
        return TEMPERATURE
    if due.unit == "count":
        return 0.0
    if drawn:
        return drawn
    return OF_SPREAD * book.spread(
        due.measurement, due.unit, same_part=True, virtual=machine.virtual
    ).between(middle, 0.0)


def year(
    machine: Machine,
    moved: Mapping[Key, Moved],
    dice: random.Random,
    nights: int,
    decay: Decay | None = None,
) -> Iterator[Night]:
    """So many nights of one machine from a random day of the year on, with a fault where there
    is one; of the figures in `moved`.
    """
    begin, wander = dice.randrange(YEAR), 0.0
    counted = dict.fromkeys((key for key, one in moved.items() if one.grows), 0.0)
    own = _own_dice(dice)
    rolled = {key: own(key) for key in moved}
    for night in range(nights):
        wander = KEEPS * wander + dice.gauss(0.0, WANDER * math.sqrt(1 - KEEPS**2))
        room = (
            SEASON * math.sin(2 * math.pi * (begin + night) / YEAR)
            + WORKDAY * ((begin + night) % 7 < 5)
            + wander
        )
        taken = dice.uniform(*OTHER_TAKES) if dice.random() < OTHER_NIGHTS / YEAR else 0.0
        first: Values = {}
        second: Values = {}
        for key, one in moved.items():
            figure = rolled[key]
            if one.grows:
                counted[key] += one.grows if one.grows < 0.1 else _poisson(one.grows, figure)
            stands = math.floor(100 * counted[key]) / 100 if key in counted else 0.0
            for look, sound in zip((first, second), _looks(one, room, taken, figure), strict=True):
                value = sound + stands
                if decay is not None:
                    value = decay(key, one.due, value, night, figure)
                look[key] = value
        yield Night(night, derived(machine, first), derived(machine, second))


def _looks(one: Moved, room: float, taken: float, dice: random.Random) -> tuple[float, float]:
    middle = one.middle + one.heat * room
    if not one.deviation:
        return middle, middle
    middle += NIGHT_SHARE * one.deviation * dice.gauss(0.0, 1.0)
    far = [FAR if dice.random() < STRAY else 1.0 for _ in range(2)]
    a, b = (middle + LOOK_SHARE * one.deviation * away * dice.gauss(0.0, 1.0) for away in far)
    left = 1.0 - taken if one.host else 1.0
    return a * left, b * left


def _poisson(mean: float, dice: random.Random) -> int:
    """How many things that come at random came, so many being usual (Knuth)."""
    count, left = 0, dice.random()
    while left > math.exp(-mean):
        count, left = count + 1, left * dice.random()
    return count
