"""What each key of a description is asked with, and what makes NVML's answer of its value."""

from __future__ import annotations

from typing import Any

from questions import Question

MODES = {"default": 0, "exclusive-thread": 1, "prohibited": 2, "exclusive-process": 3}
VIRTUALISATION = {"none": 0, "passthrough": 1, "vgpu": 2, "host-vgpu": 3, "host-vsga": 4}
FABRIC = {"not-supported": 0, "not-started": 1, "in-progress": 2, "completed": 3}
PATHS = {"INTERNAL": 0, "PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}
P2P = {
    "ok": 0,
    "chipset-not-supported": 1,
    "gpu-not-supported": 2,
    "topology-not-supported": 3,
    "disabled-by-regkey": 4,
    "not-supported": 5,
    "unknown": 6,
}
REASONS = {
    "gpu-idle": 1,
    "clocks-setting": 2,
    "sw-power-cap": 4,
    "hw-slowdown": 8,
    "sync-boost": 16,
    "sw-thermal": 32,
    "hw-thermal": 64,
    "hw-power-brake": 128,
    "display-clocks": 256,
}
VERSIONS = {"1.0": 1, "2.0": 2, "2.2": 3, "3.0": 4, "3.1": 5, "4.0": 6, "5.0": 7}
ENDS = {"gpu": 0, "npu": 1, "switch": 2, "unknown": 255}
SM, MEMORY = 1, 2


def milli(said: float) -> int:
    return round(said * 1000)


def twice(said: bool) -> list[int]:
    """A mode now and after the next start."""
    return [int(said)] * 2


def pages(said: int) -> list[int]:
    """The library makes up the addresses of retired pages."""
    return [0x1000 * (page + 1) for page in range(said)]


def bits_of(said: list[str]) -> int:
    return sum(REASONS[word] for word in said)


def capability(said: str) -> list[int]:
    return [int(part) for part in said.split(".")]


# What one key of a description is asked with, after the handle, and what makes NVML's answer of its
# value.
PLAIN: list[tuple[str, Question, Any]] = [
    ("uuid", ["nvmlDeviceGetUUID"], str),
    ("name", ["nvmlDeviceGetName"], str),
    ("serial", ["nvmlDeviceGetSerial"], str),
    ("vbios", ["nvmlDeviceGetVbiosVersion"], str),
    ("board_part_number", ["nvmlDeviceGetBoardPartNumber"], str),
    ("minor", ["nvmlDeviceGetMinorNumber"], int),
    ("compute_capability", ["nvmlDeviceGetCudaComputeCapability"], capability),
    ("cuda_cores", ["nvmlDeviceGetNumGpuCores"], int),
    ("memory_bus_bits", ["nvmlDeviceGetMemoryBusWidth"], int),
    ("sm_clock_mhz", ["nvmlDeviceGetClockInfo", SM], int),
    ("sm_clock_mhz", ["nvmlDeviceGetClockInfo", 0], int),
    ("memory_clock_mhz", ["nvmlDeviceGetClockInfo", MEMORY], int),
    ("max_sm_clock_mhz", ["nvmlDeviceGetMaxClockInfo", SM], int),
    ("max_memory_clock_mhz", ["nvmlDeviceGetMaxClockInfo", MEMORY], int),
    ("link_gen", ["nvmlDeviceGetCurrPcieLinkGeneration"], int),
    ("link_width", ["nvmlDeviceGetCurrPcieLinkWidth"], int),
    ("max_link_gen", ["nvmlDeviceGetGpuMaxPcieLinkGeneration"], int),
    ("max_link_gen_here", ["nvmlDeviceGetMaxPcieLinkGeneration"], int),
    ("max_link_width_here", ["nvmlDeviceGetMaxPcieLinkWidth"], int),
    ("pcie_replays", ["nvmlDeviceGetPcieReplayCounter"], int),
    ("pcie_tx_kbs", ["nvmlDeviceGetPcieThroughput", 0], int),
    ("pcie_rx_kbs", ["nvmlDeviceGetPcieThroughput", 1], int),
    ("temperature_c", ["nvmlDeviceGetTemperatureV", 0], int),
    ("temperature_c", ["nvmlDeviceGetTemperature", 0], int),
    ("temperature_margin_c", ["nvmlDeviceGetMarginTemperature"], int),
    ("shutdown_temperature_c", ["nvmlDeviceGetTemperatureThreshold", 0], int),
    ("slowdown_temperature_c", ["nvmlDeviceGetTemperatureThreshold", 1], int),
    ("memory_max_temperature_c", ["nvmlDeviceGetTemperatureThreshold", 2], int),
    ("max_temperature_c", ["nvmlDeviceGetTemperatureThreshold", 3], int),
    ("power_w", ["nvmlDeviceGetPowerUsage"], milli),
    ("power_limit_w", ["nvmlDeviceGetEnforcedPowerLimit"], milli),
    ("power_limit_w", ["nvmlDeviceGetPowerManagementLimit"], milli),
    ("power_limit_default_w", ["nvmlDeviceGetPowerManagementDefaultLimit"], milli),
    ("energy_j", ["nvmlDeviceGetTotalEnergyConsumption"], milli),
    ("fans", ["nvmlDeviceGetNumFans"], int),
    ("fan_percent", ["nvmlDeviceGetFanSpeed"], int),
    ("fan_percent", ["nvmlDeviceGetFanSpeed_v2", 0], int),
    ("performance_state", ["nvmlDeviceGetPerformanceState"], int),
    ("clock_event_reasons", ["nvmlDeviceGetCurrentClocksEventReasons"], bits_of),
    ("clock_event_reasons", ["nvmlDeviceGetCurrentClocksThrottleReasons"], bits_of),
    ("mig_enabled", ["nvmlDeviceGetMigMode"], twice),
    ("compute_mode", ["nvmlDeviceGetComputeMode"], MODES.get),
    ("display_active", ["nvmlDeviceGetDisplayActive"], int),
    ("display_connected", ["nvmlDeviceGetDisplayMode"], int),
    ("persistence", ["nvmlDeviceGetPersistenceMode"], int),
    ("ecc_enabled", ["nvmlDeviceGetEccMode"], twice),
    ("numa_node", ["nvmlDeviceGetNumaNodeId"], int),
    ("virtualisation", ["nvmlDeviceGetVirtualizationMode"], VIRTUALISATION.get),
    ("ecc_corrected", ["nvmlDeviceGetTotalEccErrors", 0, 0], int),
    ("ecc_uncorrected", ["nvmlDeviceGetTotalEccErrors", 1, 0], int),
    ("ecc_corrected_total", ["nvmlDeviceGetTotalEccErrors", 0, 1], int),
    ("ecc_uncorrected_total", ["nvmlDeviceGetTotalEccErrors", 1, 1], int),
    ("retired_single", ["nvmlDeviceGetRetiredPages", 0], pages),
    ("retired_double", ["nvmlDeviceGetRetiredPages", 1], pages),
    ("retired_pending", ["nvmlDeviceGetRetiredPagesPendingStatus"], int),
]
# Fields of nvmlDeviceGetFieldValues, and what makes their value.
FIELDS: dict[int, tuple[str, Any]] = {
    1: ("ecc_enabled", int),
    3: ("ecc_corrected", int),
    4: ("ecc_uncorrected", int),
    5: ("ecc_corrected_total", int),
    6: ("ecc_uncorrected_total", int),
    29: ("retired_single", int),
    30: ("retired_double", int),
    31: ("retired_pending", int),
    74: ("power_cap_ns", int),
    75: ("sw_thermal_ns", int),
    76: ("sync_boost_ns", int),
    82: ("memory_temperature_c", int),
    83: ("energy_j", milli),
    94: ("pcie_replays", int),
    142: ("remapped_corrected", int),
    143: ("remapped_uncorrected", int),
    144: ("remap_pending", int),
    145: ("remap_failed", int),
    186: ("power_w", milli),
    187: ("power_limit_min_w", milli),
    188: ("power_limit_max_w", milli),
    189: ("power_limit_default_w", milli),
    190: ("power_limit_w", milli),
    193: ("shutdown_margin_c", int),
    194: ("slowdown_margin_c", int),
    195: ("memory_max_margin_c", int),
    196: ("max_margin_c", int),
    269: ("sw_thermal_ns", int),
    270: ("hw_thermal_ns", int),
    271: ("power_brake_ns", int),
}
# Fields that take the link as their scope, and those that are there for each of the first twelve:
# of link 0 and of link 6.
LINK_FIELDS = {
    138: "data_tx_kib",
    139: "data_rx_kib",
    161: "replays",
    162: "recoveries",
    163: "crc_errors",
    164: "speed_mbs",
    215: "recoveries",
}
LINK_ROWS = {
    (32, 96): "crc_errors",
    (39, 102): "crc_data_errors",
    (46, 108): "replays",
    (53, 114): "recoveries",
    (84, 132): "speed_mbs",
}
