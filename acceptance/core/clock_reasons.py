"""Why a GPU's clocks are below the highest: the names of NVML's clock event reasons as readings
of a sample, each 0 or 1 (nvml.h).
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
UNKNOWN = "reason_unknown"  # a bit that nvml.h did not have when this was written

# Heat, or hardware that asks to be spared: what no sound machine shows. The first causes a builder
# looks at first.
HEAT_OR_HARDWARE = (HW_THERMAL, SW_THERMAL, POWER_BRAKE, HW_SLOWDOWN)
