"""How long a fault must last to be seen: made telemetry, reduced by the product's own rules, and
folded.

Pure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from acceptance.core.parts import Gpu
from acceptance.diagnosis.gpu_history import GpuHistory, HistoryPoint
from acceptance.diagnosis.laps import Laps, Slot
from selftest import drawn_runs
from selftest.drawn_runs import Machine, named
from selftest.probe import CERTAIN, cut, first
from selftest.row import Sensitivity

PERIOD_S, JITTER_S = 0.2, 0.004
# the longest gap between two samples of the recorded runs; how often one is drawn
GAP_S, GAP_SHARE = 0.31, 0.002
# Of `accept`: 240 s in two laps of seven formats.
TURN_S = 17.0
FORMATS = ("f64", "f32", "tf32", "f16", "bf16", "f8", "i8")
CLOCK_NOISE = 0.005  # of a slot's mean; two of them make the 0.007 of burn_clock_kept
STEPS_S = tuple(step / 20 for step in range(1, 401))  # up to 20 s


def lasting(runs: int, seed: int) -> tuple[Sensitivity, ...]:
    """The shortest throttle and the shortest silent loss of half the clock that
    are seen for certain.
    """
    machine = named("1xh200")
    flagged = first(
        STEPS_S,
        lambda lasts: _certain(
            machine, "gpu_hw_thermal_slowdown", _flagged, lasts, ("fail",), runs, seed
        ),
    )

    def shortest_halved(kinds: tuple[str, ...]) -> float | None:
        return first(
            STEPS_S,
            lambda lasts: _certain(machine, "burn_clock_kept", _kept, lasts, kinds, runs, seed),
        )

    halved = [shortest_halved(kinds) for kinds in (("fail",), ("fail", "warn"))]
    return (
        Sensitivity(
            "a throttle that the driver flags and does not sum, for so long",
            _seconds(flagged, "fails"),
            _before(flagged, ", in some runs"),
            (
                f"samples every {PERIOD_S:g} s with the jitter of the recorded runs; "
                "gpu_hw_thermal_slowdown, limit 0 s"
            ),
        ),
        Sensitivity(
            (
                "half of the clock, without a reason flagged, for so long in the last lap of the "
                "burn (`accept`)"
            ),
            f"{_seconds(halved[0], 'fails')}, {_seconds(halved[1], 'warns')}",
            _before(halved[1], ", in some runs"),
            "burn_clock_kept: a format's mean clock in the last lap against the first, slots of "
            "17 s; at a random moment, so that it "
            "may fall on two formats",
        ),
    )


def _seconds(value: float | None, word: str) -> str:
    return f"{word} at {value:g} s" if value is not None else f"never {word}"


def _before(value: float | None, told: str) -> str:
    return f"{value - STEPS_S[0]:.2f} s{told}" if value is not None else "all"


def _certain(
    machine: Machine,
    measurement: str,
    reduce: object,
    lasts: float,
    kinds: Sequence[str],
    runs: int,
    seed: int,
) -> bool:
    """Whether a fault that lasts so long is found in 99 of 100 drawn runs, by the measurement
    that telemetry is reduced to.
    """
    (check, due) = next(
        (check.id, due)
        for check in machine.plan.checks
        for due in check.due
        if due.measurement == measurement
    )
    small, dice, missed = cut(machine, check, due), random.Random(seed), 0
    for _ in range(runs):
        value = reduce(dice, lasts)  # type: ignore[operator]
        verdict = drawn_runs.judged(small, {(check, measurement, due.component): value})
        missed += not verdict.of_kind(*kinds)
        if missed > (1 - CERTAIN) * runs:
            return False
    return True


def _stamps(dice: random.Random, seconds: float) -> list[float]:
    found, now = [], 1000.0 + dice.uniform(0, PERIOD_S)
    while now < 1000.0 + seconds:
        found.append(now)
        now += GAP_S if dice.random() < GAP_SHARE else PERIOD_S + dice.gauss(0, JITTER_S)
    return found


def _flagged(dice: random.Random, lasts: float) -> float:
    """The seconds that the watch makes of a flag that is up for so long."""
    begin = 1002.0 + dice.random()
    points = [
        HistoryPoint(stamp, {"reason_hw_thermal": float(begin <= stamp < begin + lasts)})
        for stamp in _stamps(dice, 5.0 + lasts)
    ]
    return GpuHistory(Gpu(0), tuple(points)).seconds("reason_hw_thermal")


def _kept(dice: random.Random, lasts: float) -> float:
    """What is left of the clock, by the rule of the burn, where half of it is lost for so long
    in the last lap.
    """
    slots, lap_s = [], TURN_S * len(FORMATS)
    for lap in (0, 1):
        for place, name in enumerate(FORMATS):
            begin = 1000.0 + lap * lap_s + place * TURN_S
            slots.append(Slot(lap, name, begin, begin + TURN_S))
    clocks = [dice.gauss(1.0, CLOCK_NOISE) for _ in slots]
    begin = 1000.0 + lap_s + dice.uniform(0, lap_s - lasts)
    points = []
    for stamp in _stamps(dice, 2 * lap_s):
        clock = 1500.0 * clocks[min(int((stamp - 1000.0) / TURN_S), len(slots) - 1)]
        lost = 0.5 if begin <= stamp < begin + lasts else 1.0
        points.append(HistoryPoint(stamp, {"utilisation": 1.0, "sm_clock_mhz": clock * lost}))
    return Laps(GpuHistory(Gpu(0), tuple(points)), tuple(slots)).clock_kept()[0]
