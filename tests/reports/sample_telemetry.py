"""The telemetry of GPUs that were never here: they warm up under load, reach their power limit, and
cool down.

A made-up model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Sample
from acceptance.core.parts import Component
from acceptance.observe.gpu_sample import REASONS

PERIOD_S, WHOLE_S, SPAN_S = 0.2, 3600.0, 10.0
_NONE = dict.fromkeys((*REASONS, "reason_unknown"), 0.0)
# Slow counters, read once a second.
_COUNTED = dict.fromkeys(
    (
        *(
            "power_cap_s",
            "sync_boost_s",
            "sw_thermal_s",
            "hw_thermal_s",
            "power_brake_s",
            "ecc_corrected",
        ),
        *("ecc_uncorrected", "ecc_corrected_total", "ecc_uncorrected_total", "remapped_corrected"),
        *("remapped_uncorrected", "remap_pending", "remap_failed", "pcie_replays"),
    ),
    0.0,
)


@dataclass(frozen=True)
class Card:
    """One GPU: its power limit in W, its clocks in MHz, where it settles under load in degrees
    Celsius, and from where heat slows it.
    """

    name: Component
    limit_w: float
    clock_mhz: float
    hot_c: float
    slows_c: float = 200.0
    idle_w: float = 60.0


def looks(
    card: Card, busy: Sequence[tuple[float, float]], seconds: float, phase: float = 0.0
) -> Iterator[tuple[float, Sample]]:
    """Samples at the watch's own rate, as (seconds after the start, sample); after the first
    hour spans of ten seconds with extremes.
    """
    degrees, idle_c = 33.0 + 2 * math.sin(phase), 33.0 + 2 * math.sin(phase)
    now, place = 0.0, 0
    while now < seconds:
        step = PERIOD_S if now < WHOLE_S else SPAN_S
        while place < len(busy) and busy[place][1] <= now:
            place += 1
        working = place < len(busy) and busy[place][0] <= now
        aim = card.hot_c if working else idle_c
        degrees += (aim - degrees) * min(1.0, step / (25.0 if working else 40.0))
        wave = math.sin(now * 1.7 + phase) + math.sin(now * 0.31 + 2 * phase)
        yield (
            now,
            _sample(
                card,
                degrees,
                wave,
                working=working,
                whole=now < WHOLE_S,
                slow=int(now / PERIOD_S) % 5 == 0,
            ),
        )
        now += step


def _sample(
    card: Card, degrees: float, wave: float, *, working: bool, whole: bool, slow: bool
) -> Sample:
    hot = working and degrees > card.slows_c
    power = card.limit_w * (0.985 + 0.012 * wave) if working else card.idle_w + 4 * wave
    clock = (card.clock_mhz * (0.62 if hot else 0.9) + 12 * wave) if working else 345.0
    capped = working and not hot
    values = {
        "temperature_c": float(round(degrees)),
        "temperature_margin_c": float(87 - round(degrees)),
        "power_w": round(power * (0.8 if hot else 1.0), 3),
        "energy_j": 0.0,
        "sm_clock_mhz": float(round(clock / 15) * 15),
        "memory_clock_mhz": 3201.0,
        "link_gen": 5.0,
        "link_width": 16.0,
        "utilisation": 1.0 if working else 0.0,
        **_NONE,
        "reason_gpu_idle": float(not working),
        "reason_sw_power_cap": float(capped),
        "reason_sw_thermal": float(hot),
        "memory_temperature_c": float(round(degrees + 6)),
        **(_COUNTED if slow or not whole else {}),
    }
    if whole:
        return Sample(values, component=card.name)
    low = {"power_w": values["power_w"] * 0.9, "sm_clock_mhz": values["sm_clock_mhz"] - 90.0}
    high = {"power_w": values["power_w"] * 1.03, "sm_clock_mhz": values["sm_clock_mhz"] + 30.0}
    return Sample(values, SPAN_S, low, high, card.name)


def together(
    cards: Sequence[Card], busy: Sequence[tuple[float, float]], seconds: float
) -> Iterator[tuple[float, Sample]]:
    """The samples of several GPUs, look by look."""
    for row in zip(
        *(looks(card, busy, seconds, 0.7 * place) for place, card in enumerate(cards)), strict=True
    ):
        yield from row
