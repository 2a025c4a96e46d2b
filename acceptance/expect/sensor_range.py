"""The possible range of every reading of a GPU's sensors.

A value outside its range was not measured: drivers give 0, -128 or all ones for a sensor that does
not answer, and such a number must neither prove good cooling nor accuse a card. Ranges are wide, so
that no healthy card leaves them, and stand in `thresholds.toml`; limits are separate.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from acceptance.core import clock_reasons
from acceptance.machine.thresholds import Range, thresholds

_FLAGS = (
    clock_reasons.IDLE,
    clock_reasons.CLOCKS_SET,
    clock_reasons.POWER_CAP,
    clock_reasons.HW_SLOWDOWN,
    clock_reasons.SYNC_BOOST,
    clock_reasons.SW_THERMAL,
    clock_reasons.HW_THERMAL,
    clock_reasons.POWER_BRAKE,
    clock_reasons.DISPLAY_CLOCKS,
    clock_reasons.UNKNOWN,
)
_TIMES = ("power_cap_s", "sync_boost_s", "sw_thermal_s", "hw_thermal_s", "power_brake_s")
_COUNTERS = (
    "ecc_corrected",
    "ecc_uncorrected",
    "ecc_corrected_total",
    "ecc_uncorrected_total",
    "remapped_corrected",
    "remapped_uncorrected",
    "remap_pending",
    "remap_failed",
    "retired_single",
    "retired_double",
    "retired_pending",
    "pcie_replays",
    "nvlink_replays",
    "nvlink_recoveries",
    "nvlink_crc_errors",
)
_SETTINGS = ("power_limit_w", "application_clock_mhz", "ecc_enabled", "mig_enabled")
# Read for the live view alone, in some samples: nothing of it is judged.
THROUGHPUT = ("pcie_tx_gb_s", "pcie_rx_gb_s", "nvlink_tx_gb_s", "nvlink_rx_gb_s")
# Sampled once a second; every other reading five times a second.
SLOW = frozenset((*_TIMES, *_COUNTERS, *_SETTINGS))


@functools.cache
def ranges() -> Mapping[str, Range]:
    """The possible values by reading, of any card."""
    by = thresholds().range
    kinds = {
        "temperature_c": by.chip_c,
        "memory_temperature_c": by.memory_c,
        "temperature_margin_c": by.margin_c,
        "power_w": by.power_w,
        "power_limit_w": by.power_limit_w,
        "energy_j": by.energy_j,
        "sm_clock_mhz": by.clock_mhz,
        "application_clock_mhz": by.clock_mhz,
        "memory_clock_mhz": by.memory_clock_mhz,
        "utilisation": by.share,
        "fan": by.fan,
        "link_gen": by.link_gen,
        "link_width": by.link_width,
        **dict.fromkeys((*_FLAGS, "ecc_enabled", "mig_enabled"), by.share),
        **dict.fromkeys(_TIMES, by.time_s),
        **dict.fromkeys(_COUNTERS, by.counter),
    }
    return {name: one.between for name, one in kinds.items()}


def card_ranges(
    power_limits_w: Sequence[float | None] = (),
    highest_sm_mhz: float | None = None,
    highest_memory_mhz: float | None = None,
) -> dict[str, Range]:
    """The ranges of one card.

    Narrowed by its own power limits and highest clocks, where the driver reports them.
    """
    found, own = dict(ranges()), thresholds().own_range
    limits = [one for one in power_limits_w if one]
    if limits:
        found["power_w"] = (found["power_w"][0], own.power * max(limits))
    for name, highest in (
        ("sm_clock_mhz", highest_sm_mhz),
        ("memory_clock_mhz", highest_memory_mhz),
    ):
        if highest:
            found[name] = (found[name][0], own.clock * highest)
    return found


def outside(within: Mapping[str, Range], name: str, value: float) -> bool:
    """Whether a reading is out of its range; NaN is.

    A reading without a range never is.
    """
    if name not in within:
        return False
    low, high = within[name]
    return not low <= value <= high
