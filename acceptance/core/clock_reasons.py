"""NVML's clock event reasons: why a GPU's clocks are below their highest.

Each is a reading of a sample, 0 or 1. The names follow nvml.h.
"""

from __future__ import annotations

IDLE = "reason_gpu_idle"
CLOCKS_SET = "reason_clocks_setting"
POWER_CAP = "reason_sw_power_cap"
HW_SLOWDOWN = "reason_hw_slowdown"
SYNC_BOOST = "reason_sync_boost"
SW_THERMAL = "reason_sw_thermal"
HW_THERMAL = "reason_hw_thermal"
POWER_BRAKE = "reason_hw_power_brake"
DISPLAY_CLOCKS = "reason_display_clocks"
UNKNOWN = "reason_unknown"  # a bit that nvml.h did not define when this was written

# Overheating, or a slowdown that the hardware asks for: a sound machine shows neither. A builder
# checks these first.
HEAT_OR_HARDWARE = (HW_THERMAL, SW_THERMAL, POWER_BRAKE, HW_SLOWDOWN)
