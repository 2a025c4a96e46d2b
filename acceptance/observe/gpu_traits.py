"""GpuTraits: what a GPU is and how it is set up, according to NVML."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from acceptance.machine.inventory import GpuProcess, GpuTraits, Users
from acceptance.observe import sysfs
from acceptance.observe.nvml_call import (
    LOST,
    ask,
    ask_or_none,
    field,
    fields,
    none_if_refused,
    text,
)

# nvml.h: nvmlClockType_t, nvmlTemperatureThresholds_t, nvmlAffinityScope_t.
SM, MEMORY = 1, 2
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = 0, 1, 2, 3
_SCOPE_NODE = 0
# Words of 64 bits: enough for the most CPUs (8192) and NUMA nodes (1024) of any Linux kernel.
_CPU_WORDS, _NODE_WORDS = 128, 16
_COMPUTE_MODES = {0: "default", 1: "exclusive-thread", 2: "prohibited", 3: "exclusive-process"}
_FABRIC_STATES = {0: "not-supported", 1: "not-started", 2: "in-progress", 3: "completed"}
# The newest version of the record first; a driver refuses a version that it does not know.
_FABRIC = (
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
    ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
    ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
)


def read(nvml: Any, handle: Any, proc: Path = Path("/proc")) -> GpuTraits:
    """The traits of one GPU. Raises the binding's NVMLError when it is lost."""
    capability = ask_or_none(nvml, "nvmlDeviceGetCudaComputeCapability", handle)
    use = ask_or_none(nvml, "nvmlDeviceGetUtilizationRates", handle)
    mig, ecc = (
        ask_or_none(nvml, "nvmlDeviceGetMigMode", handle),
        ask_or_none(nvml, "nvmlDeviceGetEccMode", handle),
    )
    return GpuTraits(
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        cuda_cores=ask_or_none(nvml, "nvmlDeviceGetNumGpuCores", handle),
        max_sm_clock_mhz=_float(ask_or_none(nvml, "nvmlDeviceGetMaxClockInfo", handle, SM)),
        max_memory_clock_mhz=_float(ask_or_none(nvml, "nvmlDeviceGetMaxClockInfo", handle, MEMORY)),
        memory_bus_bits=ask_or_none(nvml, "nvmlDeviceGetMemoryBusWidth", handle),
        max_link_gen=ask_or_none(nvml, "nvmlDeviceGetGpuMaxPcieLinkGeneration", handle),
        max_link_gen_here=ask_or_none(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        max_link_width_here=ask_or_none(nvml, "nvmlDeviceGetMaxPcieLinkWidth", handle),
        power_limit_w=_thousandth(ask_or_none(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        power_limit_default_w=_thousandth(
            ask_or_none(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)
        ),
        max_temperature_c=threshold(nvml, handle, GPU_MAX),
        slowdown_temperature_c=threshold(nvml, handle, SLOWDOWN),
        shutdown_temperature_c=threshold(nvml, handle, SHUTDOWN),
        memory_max_temperature_c=threshold(nvml, handle, MEMORY_MAX),
        mig_enabled=_flag(mig[0] if mig else None),
        compute_mode=_COMPUTE_MODES.get(ask_or_none(nvml, "nvmlDeviceGetComputeMode", handle)),
        display_active=_flag(ask_or_none(nvml, "nvmlDeviceGetDisplayActive", handle)),
        persistence=_flag(ask_or_none(nvml, "nvmlDeviceGetPersistenceMode", handle)),
        mig_pending=_flag(mig[1] if mig else None),
        ecc_enabled=_flag(ecc[0] if ecc else None),
        ecc_pending=_flag(ecc[1] if ecc else None),
        numa_node=_node(nvml, handle),
        cpu_affinity=_bits(ask_or_none(nvml, "nvmlDeviceGetCpuAffinity", handle, _CPU_WORDS))
        or None,
        **_fabric(nvml, handle),
        virtualised=_flag(ask_or_none(nvml, "nvmlDeviceGetVirtualizationMode", handle)),
        compute_processes=_processes(nvml, "nvmlDeviceGetComputeRunningProcesses", handle, proc),
        graphics_processes=_processes(nvml, "nvmlDeviceGetGraphicsRunningProcesses", handle, proc),
        utilisation=use.gpu / 100.0 if use is not None else None,
        memory_thermometer=none_if_refused(
            nvml, lambda: bool(fields(nvml, handle, field(nvml, "MEMORY_TEMP")))
        ),
        fan=None if ask_or_none(nvml, "nvmlDeviceGetFanSpeed", handle) is None else True,
    )


def users(nvml: Any, handle: Any, proc: Path = Path("/proc")) -> Users:
    """The processes on one GPU now. Raises the binding's NVMLError when it is lost."""
    return Users(
        _processes(nvml, "nvmlDeviceGetComputeRunningProcesses", handle, proc),
        _processes(nvml, "nvmlDeviceGetGraphicsRunningProcesses", handle, proc),
        _flag(ask_or_none(nvml, "nvmlDeviceGetDisplayActive", handle)),
    )


def threshold(nvml: Any, handle: Any, kind: int) -> float | None:
    """One of the GPU's absolute temperature limits in degC."""
    return _float(ask_or_none(nvml, "nvmlDeviceGetTemperatureThreshold", handle, kind))


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000.0


def _flag(value: int | None) -> bool | None:
    return None if value is None else value != 0


def _bits(words: Iterable[int] | None) -> tuple[int, ...]:
    """Numbers of the bits that are set, in words of 64 bits."""
    return tuple(
        64 * place + bit
        for place, word in enumerate(words or ())
        for bit in range(64)
        if word >> bit & 1
    )


def _node(nvml: Any, handle: Any) -> int | None:
    """The NUMA node of the GPU's slot; None if NVML names several.

    (`nvmlDeviceGetNumaNodeId` is about GPU memory that is a node itself.)
    """
    nodes = _bits(
        ask_or_none(nvml, "nvmlDeviceGetMemoryAffinity", handle, _NODE_WORDS, _SCOPE_NODE)
    )
    return nodes[0] if len(nodes) == 1 else None


def _fabric(nvml: Any, handle: Any) -> dict[str, Any]:
    """The traits of the GPU's NVLink fabric, from the newest record that the driver knows."""
    error = None
    for function, record in _FABRIC:
        if (kind := getattr(nvml, record, None)) is None:
            continue
        found = kind()
        try:
            answered = ask(nvml, function, handle, ctypes.byref(found)) is not None
        except nvml.NVMLError as refusal:
            if refusal.value in LOST:
                raise
            answered, error = False, error or str(refusal)
        if answered:
            health = getattr(found, "healthMask", None)
            return {
                "fabric_state": _FABRIC_STATES.get(found.state, str(found.state)),
                "fabric_status": found.status,
                "fabric_health": health,
                "fabric_summary": getattr(found, "healthSummary", None),
                # the oldest record knows nothing of the health that a newer one failed to tell
                "fabric_error": error if health is None else None,
            }
    return {"fabric_state": None, "fabric_status": None, "fabric_error": error}


def _processes(nvml: Any, function: str, handle: Any, proc: Path) -> tuple[GpuProcess, ...] | None:
    # With the version: the binding's function without one raises another error than NVMLError if
    # the driver is older than the binding.
    found = ask_or_none(nvml, f"{function}_v3", handle)
    if found is None:  # a driver older than 510
        found = ask_or_none(nvml, f"{function}_v2", handle)
    if found is None:
        return None
    return tuple(
        GpuProcess(one.pid, _process_name(nvml, one.pid, proc), one.usedGpuMemory) for one in found
    )


def _process_name(nvml: Any, pid: int, proc: Path) -> str | None:
    """The kernel's short name of a process, or else NVML's name.

    None if the process has ended or is not visible here.
    """
    own = sysfs.text(proc / str(pid) / "comm")
    return own or text(ask_or_none(nvml, "nvmlSystemGetProcessName", pid) or "") or None
