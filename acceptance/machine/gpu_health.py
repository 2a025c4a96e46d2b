"""What the driver's words on a GPU's health mean: faults, and what nobody here knows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from acceptance.core.message import Listed, Message, english
from acceptance.machine.inventory import GpuHealth, NvmlDevice

# nvml.h, nvmlDeviceGpuRecoveryAction_t, in the words of nvidia-smi's `GPU Recovery Action`.
RECOVERY_ACTIONS = {
    0: "None",
    1: "Reset",
    2: "Reboot",
    3: "Drain P2P",
    4: "Drain and Reset",
    5: "Recover IMEX Domain",
    6: "Bus Reset",
    7: "System Reboot",
}
NOT_SUPPORTED = 0  # in every field of the fabric: neither sound nor a fault


@dataclass(frozen=True, slots=True)
class FabricField:
    """A field of the fabric's health: its place in the mask, and its values.

    Names and values are in the words of `nvidia-smi -q`. `set_up` are values that say nothing of
    the GPU: somebody has to set up the fabric. Every other value is unknown.
    """

    name: str
    shift: int
    width: int
    sound: int
    faults: Mapping[int, str]
    set_up: Mapping[int, str]


def _flag(name: str, shift: int, fault: str = "True") -> FabricField:
    return FabricField(name, shift, 0x3, 2, {1: fault}, {})


# nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*.
FABRIC = (
    _flag("Bandwidth", 0, "Degraded"),
    _flag("Route Recovery in progress", 2),
    _flag("Route Unhealthy", 4),
    _flag("Access Timeout Recovery", 6),
    FabricField(
        "Incorrect Configuration",
        8,
        0xF,
        1,
        {
            2: "Incorrect SysGUID",
            3: "Incorrect Chassis SN",
            4: "No Partition",
            5: "Insufficient Nvlinks",
            6: "Incompatible GPU Firmware",
            7: "Invalid Location",
            8: "GPU State Invalid",
        },
        {},
    ),
    FabricField("Partition Assigned", 12, 0x3, 1, {}, {2: "False"}),
    FabricField("GFM State", 14, 0x3, 1, {}, {2: "Disconnected"}),
)
# nvml.h, NVML_GPU_FABRIC_HEALTH_SUMMARY_*: a byte of its own, since version 3 of the record.
SUMMARY = FabricField("Summary", 0, 0xFF, 1, {2: "Unhealthy", 3: "Limited Capacity"}, {})


@dataclass(frozen=True, slots=True)
class HealthReading:
    """One measurement of a GPU's health.

    `count` is None where nothing is known. `faults` are in the driver's words, `unjudged` is what
    proves neither a fault nor health.
    """

    count: float | None
    faults: tuple[str, ...] = ()
    unjudged: tuple[Message, ...] = ()

    @property
    def note(self) -> Message | None:
        """The faults, for the reader of the report."""
        return (
            Message(english("driver_says", "the driver says {what}"), {"what": Listed(self.faults)})
            if self.faults
            else None
        )


_Found = tuple[list[str], list[Message]]  # faults, and what is unjudged


def _reading(faults: list[str], unjudged: list[Message]) -> HealthReading:
    count = float(len(faults)) if faults or not unjudged else None
    return HealthReading(count, tuple(faults), tuple(unjudged))


def _flags(told: Mapping[str, bool | None]) -> _Found | None:
    """The flags that are set, by their names; None where the driver offers none of them."""
    if all(flag is None for flag in told.values()):
        return None
    return [name for name, flag in told.items() if flag], []


def _recovery(health: GpuHealth) -> _Found | None:
    name, action = "GPU Recovery Action", health.recovery_action
    if action is None:
        return None
    if action not in RECOVERY_ACTIONS:
        return [], [_unknown(name, str(action))]
    return ([f"{name}: {RECOVERY_ACTIONS[action]}"] if action else []), []


def _unknown(name: str, value: str) -> Message:
    return Message(
        english(
            "health_value_unknown",
            "the driver says `{name}: {value}`, a value that rigproof does not know: it proves "
            "neither health nor a fault; look for it in the driver's nvml.h, and update rigproof",
        ),
        {"name": name, "value": value},
    )


# Each measurement with the function that it comes from, and what the answer shows; None where the
# driver does not offer it.
_HEALTH: Mapping[str, tuple[str, Callable[[GpuHealth], _Found | None]]] = {
    "gpu_sram_threshold": (
        "nvmlDeviceGetSramEccErrorStatus",
        lambda health: _flags({"SRAM Threshold Exceeded": health.sram_threshold_exceeded}),
    ),
    "gpu_repair_pending": (
        "nvmlDeviceGetRepairStatus",
        lambda health: _flags(
            {
                "Channel Repair Pending": health.channel_repair_pending,
                "TPC Repair Pending": health.tpc_repair_pending,
            }
        ),
    ),
    "gpu_memory_unrepairable": (
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        lambda health: _flags({"Unrepairable Memory": health.memory_unrepairable}),
    ),
    "gpu_inforom_corrupt": (
        "nvmlDeviceValidateInforom",
        lambda health: _flags({"Corrupted infoROM": health.inforom_corrupt}),
    ),
    "gpu_recovery_action": ("nvmlDeviceGetFieldValues", _recovery),
}


def _of_health(device: NvmlDevice, measurement: str) -> HealthReading | None:
    function, read = _HEALTH[measurement]
    health = device.health or GpuHealth()
    if (error := dict(health.unanswered).get(function)) is not None:
        return _failed(function, error)
    found = read(health)
    return None if found is None else _reading(*found)


def _failed(function: str, error: str) -> HealthReading:
    told = {"function": function, "error": error}
    return HealthReading(
        None,
        (),
        (
            Message(
                english(
                    "health_unanswered",
                    "the driver failed to answer {function} ({error}): look for NVRM lines in "
                    "`sudo dmesg`, reboot, and test again",
                ),
                told,
            ),
        ),
    )


def _banks(device: NvmlDevice) -> HealthReading | None:
    function, health = "nvmlDeviceGetRowRemapperHistogram", device.health or GpuHealth()
    if (error := dict(health.unanswered).get(function)) is not None:
        return _failed(function, error)
    banks = health.banks_without_spare
    return None if banks is None else HealthReading(float(banks))


def _fabric(device: NvmlDevice) -> HealthReading | None:
    """What the GPU's NVLink fabric says; None where no field of it is offered."""
    traits = device.traits
    if traits is None:
        return None
    if traits.fabric_error is not None:
        return _failed("nvmlDeviceGetGpuFabricInfoV", traits.fabric_error)
    mask, summary = traits.fabric_health or 0, traits.fabric_summary or 0
    if mask == summary == NOT_SUPPORTED:
        return None
    faults, unjudged = [], []
    fields = [(one, mask >> one.shift & one.width) for one in FABRIC]
    for one, value in (*fields, (SUMMARY, summary)):
        if value in one.faults:
            faults.append(f"{one.name}: {one.faults[value]}")
        elif value in one.set_up:
            told = {"name": one.name, "value": one.set_up[value]}
            unjudged.append(
                Message(
                    english(
                        "fabric_not_set_up",
                        "the NVLink fabric says `{name}: {value}`: whoever runs the fabric "
                        "manager has to set the fabric up for this machine",
                    ),
                    told,
                )
            )
        elif value not in (NOT_SUPPORTED, one.sound):
            unjudged.append(_unknown(one.name, str(value)))
    # Newer drivers add fields. Where the summary, which covers them, is sound, so are they.
    known = sum(one.width << one.shift for one in FABRIC)
    if mask & ~known and summary != SUMMARY.sound:
        unjudged.append(_unknown("Health", f"{mask & ~known:#x}"))
    return _reading(faults, unjudged)


# Each measurement of health, with its reading from NVML's record; None where it is not offered.
READINGS: Mapping[str, Callable[[NvmlDevice], HealthReading | None]] = {
    **{name: partial(_of_health, measurement=name) for name in _HEALTH},
    "gpu_banks_without_spare": _banks,
    "gpu_fabric_faults": _fabric,
}


def component_class(measurement: str) -> str:
    """The class of the GPUs that offer a measurement of health: `gpu-fabric-faults`."""
    return measurement.replace("_", "-")
