"""Numbers and names that rigproof has of its own are those of NVIDIA's binding."""

from __future__ import annotations

import pynvml
from cases import each
from test_gpu_counters import FUNCTIONS
from test_gpu_sample import HOT
from test_gpu_traits import H200

from acceptance.machine.inventory import GpuCounters
from acceptance.observe import gpu_counters, gpu_events, gpu_sample, gpu_traits, nvlink, nvml_call

ERRORS = (
    *("NO_DATA", "TIMEOUT", "NOT_FOUND", "DEPRECATED", "RESET_REQUIRED", "GPU_NOT_FOUND"),
    *("INVALID_ARGUMENT", "ARGUMENT_VERSION_MISMATCH", "LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED"),
    *("FUNCTION_NOT_FOUND", "NOT_SUPPORTED", "NO_PERMISSION", "GPU_IS_LOST"),
)
REASONS = (
    *("GpuIdle", "ApplicationsClocksSetting", "SwPowerCap", "HwSlowdown", "SyncBoost"),
    *("SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown", "DisplayClockSetting"),
)
LINKS = (*nvlink._REPLAYS, *nvlink._RECOVERIES, *nvlink._CRC_ERRORS, *nvlink._SPEED)


@each(
    "name, number",
    [
        *((f"NVML_ERROR_{name}", getattr(nvml_call, name)) for name in ERRORS),
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", nvml_call.VERSION_MISMATCH),
        ("NVML_VALUE_TYPE_COUNT", len(nvml_call._MEMBERS)),
        ("NVML_CLOCK_SM", gpu_traits.SM),
        ("NVML_CLOCK_MEM", gpu_traits.MEMORY),
        ("NVML_TEMPERATURE_THRESHOLD_SHUTDOWN", gpu_traits.SHUTDOWN),
        ("NVML_TEMPERATURE_THRESHOLD_SLOWDOWN", gpu_traits.SLOWDOWN),
        ("NVML_TEMPERATURE_THRESHOLD_MEM_MAX", gpu_traits.MEMORY_MAX),
        ("NVML_TEMPERATURE_THRESHOLD_GPU_MAX", gpu_traits.GPU_MAX),
        ("NVML_FI_DEV_PERF_POLICY_POWER", 74),
        ("NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", 76),
        ("NVML_FI_DEV_PERF_POLICY_THERMAL", 75),
        ("NVML_NVLINK_DEVICE_TYPE_SWITCH", 2),
        *(
            (f"NVML_NVLINK_VERSION_{version.replace('.', '_')}", number)
            for number, version in nvlink._VERSIONS.items()
        ),
        *(
            (f"nvmlClocksEventReason{word}", bit)
            for word, bit in zip(REASONS, gpu_sample.REASONS.values(), strict=True)
        ),
        ("nvmlClocksEventReasonAll", sum(gpu_sample.REASONS.values())),
        ("nvmlEventTypeXidCriticalError", gpu_events._XID),
    ],
)
def test_a_number(name: str, number: int) -> None:
    assert getattr(pynvml, name) == number


def test_every_name_that_is_asked_for() -> None:
    fields = (*gpu_counters._FIELDS.values(), *(name.format(11) for name in LINKS))
    fabric = (name for pair in gpu_traits._FABRIC for name in pair)
    names = {*FUNCTIONS, *HOT, *H200, *fabric, *(f"NVML_FI_DEV_{name}" for name in fields)}
    assert [name for name in names if not hasattr(pynvml, name)] == []
    assert [name for name, _ in pynvml.c_nvmlValue_t._fields_] == list(nvml_call._MEMBERS)
    own = set(GpuCounters.__slots__) - {"nvlink_replays", "nvlink_recoveries", "nvlink_crc_errors"}
    assert set(gpu_counters._FIELDS) == set(gpu_counters._FUNCTIONS) == own
