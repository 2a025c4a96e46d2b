"""NVIDIA's management library: the GPUs that the driver knows. No other module imports it.

As a program (`python -m acceptance.observe.nvml`) it prints one JSON document, NvmlAnswer. `probe`
runs that program as a child process with a deadline, because the library of a faulty driver may
hang or crash, and would take the harness with it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from acceptance.core.message import Message, Text, Values
from acceptance.machine.inventory import NvmlAnswer, NvmlDevice
from acceptance.observe import gpu_counters, gpu_health, gpu_traits, nvlink, nvml_pair
from acceptance.observe.nvml_call import LIBRARY_NOT_FOUND, address, ask, ask_or_none, text
from acceptance.process import command
from acceptance.process.command import CommandError, ProgramResult
from acceptance.process.deadline import Deadline

# Without persistence mode the driver first initialises every GPU, one after the other, which takes
# some seconds each.
PROBE_S = 60.0
LIBRARY_MISSING = Message("nvml_library_missing")

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
        return failed_answer(Message("nvml_not_asked", {"why": error.message}))
    if done.timed_out:
        told = failed_answer(Message("nvml_hangs", {"how": done.describe()}))
        return replace(told, hung=True)
    last = done.last_lines(1) or Message("printed_nothing")
    if done.returncode != 0 or done.truncated:
        return failed_answer(Message("nvml_died", {"how": done.describe(), "last": last}))
    try:
        return msgspec.json.decode(done.stdout, type=NvmlAnswer)
    except msgspec.DecodeError as error:
        values: Values = {"error": str(error), "last": last}
        return failed_answer(Message("nvml_answer_unreadable", values))


def failed_answer(error: Text, code: int | None = None) -> NvmlAnswer:
    """An answer with only an error."""
    return NvmlAnswer(None, None, (), error, code)


def refused(error: Exception) -> Message:
    """What NVML says in its own error."""
    return Message("nvml_says", {"error": str(error)})


def read(nvml: Any) -> NvmlAnswer:
    """Query the library through its binding `nvml`.

    The binding is an argument of type Any, because a module has no useful type.
    """
    try:
        nvml.nvmlInit()
        handles, devices = _devices(nvml)
        pairs = nvml_pair.read(nvml, handles, [device.error is None for device in devices])
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
                code = "nvml_same_uuid" if name == "uuid" else "nvml_same_address"
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
        for name, function, reader in _IDENTITY:
            found = ask(nvml, function, handle)
            known[name] = None if found is None else reader(found)
        for name, function, reader in _OPTIONAL:
            found = ask_or_none(nvml, function, handle)
            known[name] = None if found is None else reader(found)
        parts["traits"] = gpu_traits.read(nvml, handle)
        parts["links"] = nvlink.read(nvml, handle)
        active = [link.link for link in parts["links"] if link.active]
        parts["counters"] = gpu_counters.read(nvml, handle, active)
        parts["health"] = gpu_health.read(nvml, handle)
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
