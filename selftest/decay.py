"""What goes wrong with a machine over nights: faults that begin on a known night, as what they do
to a sound night's values.

Pure.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from synthetic_machines import DISK

from acceptance.core.parts import Gpu
from acceptance.core.plan import Due
from selftest.drawn_nights import Decay
from selftest.drawn_runs import Key

GPU = Gpu(0)
# The share of looks in which a link that trains anew now and then is found slow: assumed.
FLAPS = 0.3
# degC a night and in all of a fan that wears out, and what the rate loses with the clock by then:
# assumed.
FAN_A_NIGHT, FAN_MOST, FAN_TAKES = 0.2, 12.0, 0.02


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it is, and what it does from its first night on (`decay` counts nights from
    it).

    `era`: on that night the driver was changed, so the nights before are no measure any more.
    `fails`: it is to fail in the end; else it is to be remarked only, or (`era`) nothing is to be
    said. `seed`: the words that its dice start from, where `what` was reworded after the figures of
    docs/sensitivity.md were drawn; else `what` itself.
    """

    what: str
    decay: Decay
    era: bool = False
    fails: bool = True
    seed: str = ""


def of_products(due: Due) -> bool:
    """Whether it is a rate of the faulty GPU's products."""
    return due.component == GPU and due.unit == "TFLOP/s"


def of_one_product(due: Due) -> bool:
    """Whether it is the rate of one format alone."""
    return due.component == GPU and due.measurement == "gemm_bf16"


def of_host_copies(due: Due) -> bool:
    """Whether it is a rate over the faulty GPU's own link."""
    return (
        due.component == GPU
        and due.unit == "GB/s"
        and ("h2d" in due.measurement or "d2h" in due.measurement)
    )


def slower(share: float, which: Callable[[Due], bool] = of_products) -> Decay:
    """Slower by a share from the first night on."""

    def decay(_key: Key, due: Due, value: float, _night: int, _dice: random.Random) -> float:
        return (1 - share) * value if which(due) else value

    return decay


def slope(share: float, which: Callable[[Due], bool] = of_products) -> Decay:
    """Slower by a share every thirty nights."""

    def decay(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
        return (1 - share * night / 30) * value if which(due) else value

    return decay


def noisier(share: float) -> Decay:
    """Products that come out faster or slower, by so much as one deviation."""

    def decay(_key: Key, due: Due, value: float, _night: int, dice: random.Random) -> float:
        return value * (1 + dice.gauss(0.0, share)) if of_products(due) else value

    return decay


def fan(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
    """A fan that wears out: hotter night by night, and a little slower at the end."""
    hotter = min(FAN_A_NIGHT * night, FAN_MOST)
    if due.component != GPU:
        return value
    if due.measurement in ("gpu_temperature", "gpu_memory_temperature"):
        return value + hotter
    if due.measurement == "gpu_temperature_margin":
        return value - hotter
    return value * (1 - FAN_TAKES * hotter / FAN_MOST) if due.unit == "TFLOP/s" else value


def hotter(key: Key, due: Due, value: float, night: int, dice: random.Random) -> float:
    """The same where the rate does not suffer."""
    return value if due.unit == "TFLOP/s" else fan(key, due, value, night, dice)


def lanes(_key: Key, due: Due, value: float, _night: int, _dice: random.Random) -> float:
    """A link that trained with half its lanes."""
    return value / 2 if of_host_copies(due) else value


def flapping(_key: Key, due: Due, value: float, _night: int, dice: random.Random) -> float:
    """Copies that are a tenth slower in some looks."""
    return 0.9 * value if of_host_copies(due) and dice.random() < FLAPS else value


def counts(measurement: str, a_night: float, nights: int | None = None) -> Decay:
    """A counter that grows by so much more every night, for so many nights."""

    def decay(_key: Key, due: Due, value: float, night: int, _dice: random.Random) -> float:
        if due.measurement != measurement or due.component not in (GPU, DISK.component):
            return value
        grown = a_night * (night + 1 if nights is None else min(night + 1, nights))
        return value + (round(grown, 2) if due.unit == "ratio" else round(grown))

    return decay


FAULTS = (
    Fault("every product of a GPU 2 % slower", slower(0.02)),
    Fault("every product of a GPU 3 % slower", slower(0.03)),
    Fault("every product of a GPU 5 % slower", slower(0.05)),
    Fault("one format alone 3 % slower", slower(0.03, of_one_product)),
    Fault("one format alone 5 % slower", slower(0.05, of_one_product)),
    Fault("every product 1 % slower a month", slope(0.01)),
    Fault("one format alone 1 % slower a month", slope(0.01, of_one_product)),
    Fault("every product 0.5 % slower a month", slope(0.005)),
    Fault("a fan that wears out: 0.2 degC a night, in the end 12 degC and 2 % of the rate", fan),
    Fault("the same, where the rate does not suffer", hotter),
    Fault("a link that trained with 8 of 16 lanes (by its copies alone)", lanes),
    Fault(
        "copies a tenth slower in three measurements of ten",
        flapping,
        seed="copies a tenth slower in three looks of ten",
    ),
    Fault(
        "products that move by 3 % from measurement to measurement",
        noisier(0.03),
        seed="products that move by 3 % from look to look",
    ),
    Fault(
        "one row of a GPU's memory remapped", counts("gpu_remapped_corrected", 1, 1), fails=False
    ),
    Fault("a row remapped every night", counts("gpu_remapped_corrected", 1)),
    Fault("50 corrected memory errors a night", counts("gpu_ecc_corrected_total", 50), fails=False),
    Fault("5000 corrected memory errors a night", counts("gpu_ecc_corrected_total", 5000)),
    Fault("200 PCI Express replays a night", counts("gpu_pcie_replays_total", 200), fails=False),
    Fault("1 % of a disk's life a week", counts("disk_wear", 0.01 / 7), fails=False),
    Fault(
        "another driver, with which all products are 4 % slower",
        slower(0.04),
        era=True,
        fails=False,
    ),
    Fault("the same 4 % without another driver", slower(0.04)),
)
