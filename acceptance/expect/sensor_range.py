"""The possible range of every reading of a GPU's sensors, and of a processor's temperature. Pure.

A value outside its range was not measured: drivers give 0, -128 or all ones for a sensor that does
not answer, and such a number must neither prove good cooling nor accuse a card. Ranges are wide, so
that no healthy card leaves them; limits are separate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptance.core import clock_reasons

Range = tuple[float, float]

# A chip shuts down at about 105 degC, GDDR6X memory is specified to 110; a card that is on is above
# freezing.
_CHIP_C: Range = (1.0, 130.0)
_MEMORY_C: Range = (1.0, 150.0)
# Of a processor's sensor: 0 and below of one that is dead, 127 and 255 degC of one that did not
# convert. Processors shut down at 100 to 125 degC.
CPU_C: Range = (1.0, 126.0)
# 32-bit counters read as all ones on a card that has fallen off the bus, and
# NVML_VALUE_NOT_AVAILABLE is all ones too (nvml.h).
_COUNTER: Range = (0.0, 2.0**32 - 2)
_FLAG: Range = (0.0, 1.0)
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
RANGES: dict[str, Range] = {
    "temperature_c": _CHIP_C,
    "memory_temperature_c": _MEMORY_C,
    "temperature_margin_c": (-60.0, 130.0),
    "power_w": (0.1, 3000.0),
    "power_limit_w": (1.0, 3000.0),
    "energy_j": (1e-3, 1e13),
    "sm_clock_mhz": (1.0, 6000.0),
    "application_clock_mhz": (1.0, 6000.0),
    "memory_clock_mhz": (1.0, 40000.0),
    "utilisation": (0.0, 1.0),
    "fan": (0.0, 2.0),  # "may exceed 100 % in certain cases" (nvml.h, nvmlDeviceGetFanSpeed)
    "link_gen": (1.0, 8.0),
    "link_width": (1.0, 32.0),
    **dict.fromkeys((*_FLAGS, "ecc_enabled", "mig_enabled"), _FLAG),
    **dict.fromkeys(_TIMES, (0.0, 1e10)),
    **dict.fromkeys(_COUNTERS, _COUNTER),
}
# Momentary power of healthy cards reaches 1.35 of the limit in pulses (two H200, 943 of 700 W);
# twice the limit is no valid reading.
_POWER_FACTOR = 2.0
# Clocks are reported in steps of some MHz, and never above the card's highest.
_CLOCK_FACTOR = 1.05


def card_ranges(
    power_limits_w: Sequence[float | None] = (),
    highest_sm_mhz: float | None = None,
    highest_memory_mhz: float | None = None,
) -> dict[str, Range]:
    """The ranges of one card.

    Narrowed by its own power limits and highest clocks, where the driver reports them.
    """
    found = dict(RANGES)
    limits = [one for one in power_limits_w if one]
    if limits:
        found["power_w"] = (RANGES["power_w"][0], _POWER_FACTOR * max(limits))
    for name, highest in (
        ("sm_clock_mhz", highest_sm_mhz),
        ("memory_clock_mhz", highest_memory_mhz),
    ):
        if highest:
            found[name] = (RANGES[name][0], _CLOCK_FACTOR * highest)
    return found


def outside(ranges: Mapping[str, Range], name: str, value: float) -> bool:
    """Whether a reading is out of its range; NaN is.

    A reading without a range never is.
    """
    if name not in ranges:
        return False
    low, high = ranges[name]
    return not low <= value <= high
