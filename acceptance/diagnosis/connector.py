"""A card that draws less power than its equals while its fans run higher. Pure.

A connector or cable of high resistance gets hot, and the card's own supply gives the chip less: the
card does the same work at lower clocks, and cools more. In the whole burn all cards have the same
load, so equal cards are comparable; one with a lower power limit must only reach its share of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from acceptance.core import clock_reasons
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.diagnosis.gpu_history import HistoryPoint
from acceptance.diagnosis.steady_state import BurnTelemetry
from acceptance.diagnosis.time_weight import weighted_mean, weighted_values
from acceptance.expect.components import LEAST_EQUALS

# Below both, equal cards differ by their chips: two H200s 698 and 703 W at one limit, cards in
# slots by up to 3 %. Published detectors take the same bounds.
LESS_W, LESS_SHARE = 25.0, 0.06
HIGHER_FAN = 0.05  # of full speed: fans are told in hundredths, and equal cards differ by some
# Held back by heat for more of the time than this, a card draws less because it is hot.
HOT_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Draw:
    """What a card drew in the second half of the burn: means of power in W and of its fans' speed.

    `limit_w` is its power limit, None where it is not told; `hot` says that heat held it back.
    """

    power_w: float
    fan: float
    limit_w: float | None
    hot: bool


def draw(burn: BurnTelemetry) -> Draw:
    """The draw of a card in full use. Raises NotMeasured where power or fan was not sampled."""
    since = burn.end_s - burn.seconds / 2

    def mean(name: str) -> float:
        return weighted_mean(
            weighted_values(burn.history, name, since, burn.end_s, HistoryPoint.busy)
        )

    heat = (clock_reasons.HW_THERMAL, clock_reasons.SW_THERMAL)
    limits = [point.values.get("power_limit_w") for point in burn.history.points]
    return Draw(
        mean("power_w"),
        mean("fan"),
        next((limit for limit in limits if limit is not None), None),
        any(burn.history.offers(name) and mean(name) > HOT_SHARE for name in heat),
    )


def compare(
    draws: Mapping[Component, Draw], siblings: Mapping[str, Sequence[Component]]
) -> dict[Component, Message | None]:
    """What is told against each card by its equals, None for nothing.

    Cards with fewer than two equals are absent: nobody can say which of two is the odd one.
    """
    found: dict[Component, Message | None] = {}
    for names in siblings.values():
        for name in names:
            equals = [draws[other] for other in names if other != name and other in draws]
            if name in draws and len(equals) >= LEAST_EQUALS - 1:
                found[name] = _against(draws[name], equals)
    return found


def _expected_w(own: Draw, equals: Sequence[Draw]) -> float:
    """What equals draw: the median in W, or as a share of the own limit where that is less."""
    found = [median(one.power_w for one in equals)]
    shares = [one.power_w / one.limit_w for one in equals if one.limit_w]
    if own.limit_w and len(shares) == len(equals):
        found.append(median(shares) * own.limit_w)
    return min(found)


def _against(own: Draw, equals: Sequence[Draw]) -> Message | None:
    power_w, fan = _expected_w(own, equals), median(one.fan for one in equals)
    less = power_w - own.power_w >= max(LESS_W, LESS_SHARE * power_w)
    if not less or own.fan - fan < HIGHER_FAN or own.hot:
        return None
    return Message(
        "draws_less_and_cools_more",
        {
            "power": f"{own.power_w:.0f}",
            "equals": f"{power_w:.0f}",
            "fan": f"{100 * own.fan:.0f}",
            "fans": f"{100 * fan:.0f}",
        },
    )
