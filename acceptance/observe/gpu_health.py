"""GpuHealth: repairs of a GPU that wait, its InfoROM, and what the driver wants done with it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from acceptance.machine.inventory import GpuHealth
from acceptance.observe.nvml_call import (
    CORRUPTED_INFOROM,
    LOST,
    NOT_OFFERED,
    ask,
    available_fields,
    field,
    fields,
    first,
)

# nvml.h, nvmlDeviceGpuRecoveryAction_t.
_NONE, _RESET, _DRAIN_AND_RESET = 0, 1, 4
_Values = dict[str, Any]


def read(nvml: Any, handle: Any) -> GpuHealth:
    """The health of one GPU. Raises the binding's NVMLError when it is lost."""
    found: _Values = {}
    failed: dict[str, str] = {}
    for name, reader in _READERS:
        try:
            found |= reader(nvml, handle)
        except nvml.NVMLError as error:
            if error.value in LOST:
                raise
            if error.value not in NOT_OFFERED:
                failed[name] = str(error)
    return GpuHealth(**found, unanswered=tuple(failed.items()))


def _sram(nvml: Any, handle: Any) -> _Values:
    record = getattr(nvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    if record is None:
        return {}
    status = record()
    if ask(nvml, "nvmlDeviceGetSramEccErrorStatus", handle, ctypes.byref(status)) is None:
        return {}
    return {"sram_threshold_exceeded": status.bThresholdExceeded != 0}


def _inforom(nvml: Any, handle: Any) -> _Values:
    """By the function's own error: it gives no value."""
    validate = getattr(nvml, "nvmlDeviceValidateInforom", None)
    if validate is None:
        return {}
    try:
        validate(handle)
    except nvml.NVMLError as error:
        if error.value != CORRUPTED_INFOROM:
            raise
        return {"inforom_corrupt": True}
    return {"inforom_corrupt": False}


def _recovery(nvml: Any, handle: Any) -> _Values:
    """The action; of a driver that does not know it from the two flags that it has replaced."""
    told = list(fields(nvml, handle, field(nvml, "GET_GPU_RECOVERY_ACTION")).values())
    if not told:
        flags = {
            _DRAIN_AND_RESET: field(nvml, "DRAIN_AND_RESET_STATUS"),
            _RESET: field(nvml, "RESET_STATUS"),
        }
        asked = [one for names in flags.values() for one in names]
        values = available_fields(nvml, handle, asked)
        told = [action for action, names in flags.items() if first(values, names)]
        # raises what one of the flags failed to answer
        told += [_NONE] if not told and fields(nvml, handle, asked) else []
    return {"recovery_action": int(told[0])} if told else {}


def _answer(
    function: str, values: Callable[[Any], _Values]
) -> tuple[str, Callable[[Any, Any], _Values]]:
    """A function, and the reader of the values in its answer."""

    def reader(nvml: Any, handle: Any) -> _Values:
        answer = ask(nvml, function, handle)
        return {} if answer is None else values(answer)

    return function, reader


_READERS: tuple[tuple[str, Callable[[Any, Any], _Values]], ...] = (
    ("nvmlDeviceGetSramEccErrorStatus", _sram),
    _answer(
        "nvmlDeviceGetRepairStatus",
        lambda pending: {
            "channel_repair_pending": pending[0] != 0,
            "tpc_repair_pending": pending[1] != 0,
        },
    ),
    _answer(
        "nvmlDeviceGetUnrepairableMemoryFlag_v1", lambda flag: {"memory_unrepairable": flag != 0}
    ),
    _answer(
        "nvmlDeviceGetRowRemapperHistogram",
        lambda histogram: {"banks_without_spare": histogram.none},
    ),
    ("nvmlDeviceValidateInforom", _inforom),
    ("nvmlDeviceGetFieldValues", _recovery),
)
