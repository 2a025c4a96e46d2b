"""What goes wrong with a machine over nights: faults that begin on a known day, as what they change in a sound night's values."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from acceptance.judge.plan import Due
from selftest.journals_made import Key
from selftest.nights_made import Decay

GPU = "gpu0"
# The share of looks in which a link that trains anew now and then is found with half its lanes: assumed.
FLAPS = 0.3
# degC a day and in all of a fan that wears out, and what the rate loses with the clock at its end: assumed.
FAN_A_DAY, FAN_MOST, FAN_TAKES = 0.2, 12.0, 0.02


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it is, what it does from its first night on (`decay` counts nights from it), and whether nothing is to fail.

    `era`: from that night on the machine runs under another driver, so its nights before are not its past.
    """

    what: str
    decay: Decay
    era: bool = False
    sound: bool = False


def of_products(due: Due) -> bool:
    """Whether a rate of the faulty GPU's products."""
    return due.component == GPU and due.unit == "TFLOP/s"


def of_host_copies(due: Due) -> bool:
    """Whether a rate over the faulty GPU's own link."""
    return due.component == GPU and due.unit == "GB/s" and ("h2d" in due.measurement or "d2h" in due.measurement)


def slower(share: float, which: Callable[[Due], bool] = of_products) -> Decay:
    """Slower by a share from the first night on."""

    def decay(_key: Key, due: Due, value: float, _night: int, _dice: random.Random) -> float:
        return (1 - share) * value if which(due) else value

    return decay


def slope(share: float) -> Decay:
    """Slower by a share every thirty nights."""

    def decay(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
        return (1 - share * night / 30) * value if of_products(due) else value

    return decay


def fan(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
    """A fan that wears out: hotter day by day, and a little slower at the end."""
    hotter = min(FAN_A_DAY * night, FAN_MOST)
    if due.component != GPU:
        return value
    if due.measurement in ("gpu_temperature", "gpu_memory_temperature"):
        return value + hotter
    if due.measurement == "gpu_temperature_margin":
        return value - hotter
    return value * (1 - FAN_TAKES * hotter / FAN_MOST) if due.unit == "TFLOP/s" else value


def lanes(_key: Key, due: Due, value: float, _night: int, _dice: random.Random) -> float:
    """A link that trains with half its lanes."""
    if due.measurement == "gpu_link_width" and due.component == GPU:
        return value / 2
    return value / 2 if of_host_copies(due) else value


def flapping(_key: Key, due: Due, value: float, _night: int, dice: random.Random) -> float:
    """Copies that are a tenth slower in some looks."""
    return 0.9 * value if of_host_copies(due) and dice.random() < FLAPS else value


def counter(measurement: str, a_night: float) -> Decay:
    """A counter that grows by so much every night."""

    def decay(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
        return (
            value + a_night * (night + 1) if due.measurement == measurement and due.component in (GPU, DISK) else value
        )

    return decay


DISK = "disk:nvme0n1"
FAULTS = (
    Fault("every product of a GPU 2 % slower", slower(0.02)),
    Fault("every product of a GPU 3 % slower", slower(0.03)),
    Fault("every product of a GPU 5 % slower", slower(0.05)),
    Fault(
        "one product (bfloat16, sustained) alone 3 % slower",
        slower(0.03, lambda due: due.component == GPU and due.measurement == "gemm_bf16"),
    ),
    Fault("every product 1 % slower a month", slope(0.01)),
    Fault("every product 0.5 % slower a month", slope(0.005)),
    Fault("a fan that wears out: 0.2 degC a day", fan),
    Fault("a link with 8 of 16 lanes", lanes),
    Fault("copies a tenth slower in three looks of ten", flapping),
    Fault("another driver, 4 % slower in all products", slower(0.04), era=True, sound=True),
    Fault("the same 4 % without another driver", slower(0.04)),
)
