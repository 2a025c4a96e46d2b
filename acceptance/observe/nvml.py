"""NVIDIA's management library: the GPUs that the driver knows. No other module imports it.

As a program (`python -m acceptance.observe.nvml`) it prints one JSON document, NvmlAnswer. `probe`
runs that program as a child process with a deadline, because the library of a faulty driver may
hang or crash, and would take the harness with it.

NvmlPair: the path between two GPUs, according to NVML.

GpuHealth: repairs of a GPU that wait, its InfoROM, and what the driver wants done with it.
"""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec

from acceptance.core.message import Message, Text, Values, english
from acceptance.machine.inventory import GpuHealth, NvmlAnswer, NvmlDevice, NvmlPair
from acceptance.observe import gpu_counters, gpu_traits, nvlink
from acceptance.observe.nvml_call import (
    CORRUPTED_INFOROM,
    LIBRARY_NOT_FOUND,
    LOST,
    NOT_OFFERED,
    address,
    ask,
    ask_or_none,
    available_fields,
    field,
    fields,
    first,
    text,
)
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline

# nvml.h: nvmlGpuTopologyLevel_t, nvmlGpuP2PStatus_t, nvmlGpuP2PCapsIndex_t.
_PATHS = {0: "INTERNAL", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_STATES = (
    "ok",
    "chipset-not-supported",
    "gpu-not-supported",
    "topology-not-supported",
    "disabled-by-regkey",
    "not-supported",
    "unknown",
)
_READ, _WRITE, _NVLINK = 0, 1, 2


def read_pairs(nvml: Any, handles: Sequence[Any], answers: Sequence[bool]) -> tuple[NvmlPair, ...]:
    """Every ordered pair of the GPUs that answer, in order of their indices.

    If a GPU is lost during the calls, the values of its pairs are None, and the error is kept.
    """
    known = [index for index, answering in enumerate(answers) if answering]
    return tuple(_pairs(nvml, handles, known))


def _pairs(nvml: Any, handles: Sequence[Any], known: Sequence[int]) -> Iterator[NvmlPair]:
    for a, b in permutations(known, 2):
        ends = (handles[a], handles[b])
        errors: list[str] = []
        level = _ask_state(nvml, errors, "nvmlDeviceGetTopologyCommonAncestor", *ends)
        reading, writing, nvlink = (
            _state(_ask_state(nvml, errors, "nvmlDeviceGetP2PStatus", *ends, kind))
            for kind in (_READ, _WRITE, _NVLINK)
        )
        path = None if level is None else _PATHS.get(level)
        yield NvmlPair(a, b, path, reading, writing, nvlink, errors[0] if errors else None)


def _ask_state(nvml: Any, errors: list[str], function: str, *arguments: Any) -> Any:
    try:
        return ask(nvml, function, *arguments)
    except nvml.NVMLError as refusal:
        errors.append(str(refusal))
        return None


def _state(number: int | None) -> str | None:
    if number is None:
        return None
    return _STATES[number] if number < len(_STATES) else "unknown"


# nvml.h, nvmlDeviceGpuRecoveryAction_t.
_NONE, _RESET, _DRAIN_AND_RESET = 0, 1, 4
_Values = dict[str, Any]


def read_health(nvml: Any, handle: Any) -> GpuHealth:
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
    return (
        {}
        if ask(nvml, "nvmlDeviceGetSramEccErrorStatus", handle, ctypes.byref(status)) is None
        else {"sram_threshold_exceeded": status.bThresholdExceeded != 0}
    )


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


# Without persistence mode the driver first initialises every GPU, one after the other, which takes
# some seconds each.
PROBE_S = 60.0
LIBRARY_MISSING = Message(
    english("nvml_library_missing", "the NVIDIA driver library libnvidia-ml.so.1 is not installed")
)

_Asked = tuple[tuple[str, str, Callable[[Any], Any]], ...]
# Identity of a GPU: field, function, and conversion of its result. A GPU that refuses one of these
# is faulty.
_IDENTITY: _Asked = (
    ("pci_address", "nvmlDeviceGetPciInfo", address),
    ("uuid", "nvmlDeviceGetUUID", text),
    ("name", "nvmlDeviceGetName", text),
    ("memory_bytes", "nvmlDeviceGetMemoryInfo", lambda info: int(info.total)),
)
_OPTIONAL: _Asked = (
    ("serial", "nvmlDeviceGetSerial", lambda serial: text(serial) or None),
    ("vbios", "nvmlDeviceGetVbiosVersion", lambda version: text(version) or None),
)


def probe(run: Callable[..., ProgramResult] = command.run, *, deadline: Deadline) -> NvmlAnswer:
    """Query the library in a child process.

    If the child hangs, dies or prints something else, `error` is set in the answer.
    """
    package_root = Path(__file__).resolve().parents[2]  # so that a checkout can be imported too
    try:
        done = run(
            (sys.executable, "-m", "acceptance.observe.nvml"),
            deadline=deadline.sooner(PROBE_S),
            cwd=package_root,
        )
    except CommandError as error:
        return failed_answer(
            Message(
                english("nvml_not_asked", "NVML could not be asked: {why}"), {"why": error.message}
            )
        )
    if done.timed_out:
        told = failed_answer(
            Message(english("nvml_hangs", "NVML {how}: the driver hangs"), {"how": done.describe()})
        )
        return replace(told, hung=True)
    last = done.last_lines(1) or Message(english("printed_nothing", "it printed nothing"))
    if done.returncode != 0 or done.truncated:
        return failed_answer(
            Message(
                english("nvml_died", "asking NVML {how}: {last}"),
                {"how": done.describe(), "last": last},
            )
        )
    try:
        return msgspec.json.decode(done.stdout, type=NvmlAnswer)
    except msgspec.DecodeError as error:
        values: Values = {"error": str(error), "last": last}
        return failed_answer(
            Message(
                english(
                    "nvml_answer_unreadable",
                    "asking NVML gave no readable answer ({error}): {last}",
                ),
                values,
            )
        )


def failed_answer(error: Text, code: int | None = None) -> NvmlAnswer:
    """An answer with only an error."""
    return NvmlAnswer(None, None, (), error, code)


def refused(error: Exception) -> Message:
    """What NVML says in its own error."""
    return Message(english("nvml_says", "NVML says: {error}"), {"error": str(error)})


def read(nvml: Any) -> NvmlAnswer:
    """Query the library through its binding `nvml`.

    The binding is an argument of type Any, because a module has no useful type.
    """
    try:
        nvml.nvmlInit()
        handles, devices = _devices(nvml)
        pairs = read_pairs(nvml, handles, [device.error is None for device in devices])
        driver = text(nvml.nvmlSystemGetDriverVersion())
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
    except nvml.NVMLError as error:
        return failed_answer(
            LIBRARY_MISSING if error.value == LIBRARY_NOT_FOUND else refused(error), error.value
        )
    # cuda.h, cuDriverGetVersion: 1000 x major + 10 x minor.
    return NvmlAnswer(driver, f"{cuda // 1000}.{cuda % 1000 // 10}", devices, None, None, pairs)


def _devices(nvml: Any) -> tuple[list[Any], tuple[NvmlDevice, ...]]:
    """Every GPU and its handle, None for a GPU without one."""
    handles, devices = [], []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle, device = _device(nvml, index)
        handles.append(handle)
        devices.append(device)
    return handles, _distinct(tuple(devices))


def _distinct(devices: tuple[NvmlDevice, ...]) -> tuple[NvmlDevice, ...]:
    """The devices, with an error for each that shares its UUID or address with another.

    Nobody could say which of them was tested.
    """
    shared: dict[int | None, Message] = {}
    for name in ("uuid", "pci_address"):
        counts = Counter(getattr(device, name) for device in devices)
        for device in devices:
            found = getattr(device, name)
            if found is not None and counts[found] > 1:
                code = (
                    english("nvml_same_uuid", "NVML gives {count} GPUs the same uuid {value}")
                    if name == "uuid"
                    else english(
                        "nvml_same_address", "NVML gives {count} GPUs the same address {value}"
                    )
                )
                values = {"count": counts[found], "value": found}
                shared.setdefault(device.index, Message(code, values))
    return tuple(
        replace(device, error=device.error or shared[device.index])
        if device.index in shared
        else device
        for device in devices
    )


def _device(nvml: Any, index: int) -> tuple[Any, NvmlDevice]:
    handle: Any = None
    error: Message | None = None
    code: int | None = None
    known: dict[str, Any] = dict.fromkeys(
        ("pci_address", "uuid", "name", "memory_bytes", "serial", "vbios")
    )
    parts: dict[str, Any] = {}
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        for asking, asked in ((ask, _IDENTITY), (ask_or_none, _OPTIONAL)):
            for name, function, reader in asked:
                found = asking(nvml, function, handle)
                known[name] = None if found is None else reader(found)
        parts["traits"] = gpu_traits.read(nvml, handle)
        parts["links"] = nvlink.read(nvml, handle)
        active = [link.link for link in parts["links"] if link.active]
        parts["counters"] = gpu_counters.read(nvml, handle, active)
        parts["health"] = read_health(nvml, handle)
    except nvml.NVMLError as failure:
        error, code = refused(failure), failure.value
    return handle, NvmlDevice(index, **known, error=error, error_code=code, **parts)


def binding() -> Any:
    """NVIDIA's binding itself, for programs that need more than `read`."""
    import pynvml

    return pynvml


def main() -> None:
    """Print the answer as one JSON document."""
    sys.stdout.write(msgspec.json.encode(read(binding())).decode() + "\n")


if __name__ == "__main__":
    main()
