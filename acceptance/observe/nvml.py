"""NVIDIA's management library: the GPUs that the driver knows. The only place that imports it.

Run as a program (`python -m acceptance.observe.nvml`) it prints one JSON document, NvmlAnswer. `probe` runs it so, as a child with a
deadline, because the library of a sick driver may hang or crash, and would take the harness with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from acceptance import command
from acceptance.command import CommandError, Completed
from acceptance.deadline import Deadline

PROBE_S = 10.0
LIBRARY_MISSING = "the NVIDIA driver library libnvidia-ml.so.1 is not installed"

# nvml.h, nvmlReturn_t.
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
VERSION_MISMATCH = 18
# The answers that mean "this GPU does not offer that", not that it is sick.
_NOT_OFFERED = frozenset({NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND})
_BUS_ID = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")


@dataclass(frozen=True, slots=True)
class NvmlDevice:
    """One GPU as the driver knows it. `error` is set when it stopped answering; what was read before that is kept."""

    index: int
    uuid: str | None
    name: str | None
    pci_address: str | None
    serial: str | None
    vbios: str | None
    memory_bytes: int | None
    error: str | None
    error_code: int | None


@dataclass(frozen=True, slots=True)
class NvmlAnswer:
    """What the library said. `error` is set when it could not be asked; `error_code` is NVML's own number where it gave one."""

    driver_version: str | None
    cuda_driver_version: str | None
    devices: tuple[NvmlDevice, ...]
    error: str | None
    error_code: int | None


def probe(run: Callable[..., Completed] = command.run, *, deadline: Deadline) -> NvmlAnswer:
    """Ask the library in a child of its own. A child that hangs, dies or prints something else is an answer with `error` set."""
    package_root = Path(__file__).resolve().parents[2]  # a checkout is found too
    try:
        done = run(
            (sys.executable, "-m", "acceptance.observe.nvml"), deadline=deadline.sooner(PROBE_S), cwd=package_root
        )
    except CommandError as error:
        return failed(f"NVML could not be asked: {error}")
    if done.timed_out:
        return failed(f"NVML {done.describe()}: the driver hangs")
    last = done.last_lines(1) or "it printed nothing"
    if done.returncode != 0 or done.truncated:
        return failed(f"asking NVML {done.describe()}: {last}")
    try:
        return msgspec.json.decode(done.stdout, type=NvmlAnswer)
    except msgspec.DecodeError as error:
        return failed(f"asking NVML gave no readable answer ({error}): {last}")


def failed(error: str, code: int | None = None) -> NvmlAnswer:
    """An answer that holds nothing but why."""
    return NvmlAnswer(None, None, (), error, code)


def read(nvml: Any) -> NvmlAnswer:
    """Ask the library through its binding, given as an argument because a module has no type worth the name."""
    try:
        nvml.nvmlInit()
        devices = tuple(_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
    except nvml.NVMLError as error:
        return failed(LIBRARY_MISSING if error.value == LIBRARY_NOT_FOUND else f"NVML says: {error}", error.value)
    # cuda.h, cuDriverGetVersion: 1000 x major + 10 x minor.
    return NvmlAnswer(driver, f"{cuda // 1000}.{cuda % 1000 // 10}", devices, None, None)


def normalised(bus_id: str) -> str:
    """A PCI address as sysfs spells it ("0000:01:00.0") from NVML's ("00000000:01:00.0"). Raises ValueError for anything else."""
    match = _BUS_ID.fullmatch(bus_id)
    if match is None:
        raise ValueError(f"NVML gave {bus_id!r}, which is not a PCI address")
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}.{match[4]}".lower()


def _device(nvml: Any, index: int) -> NvmlDevice:
    error: str | None = None
    code: int | None = None
    read: dict[str, Any] = {}
    getters: dict[str, Callable[[Any], Any]] = {
        "pci_address": lambda handle: normalised(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        "uuid": lambda handle: _text(nvml.nvmlDeviceGetUUID(handle)),
        "name": lambda handle: _text(nvml.nvmlDeviceGetName(handle)),
        "memory_bytes": lambda handle: int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        "serial": lambda handle: _text(nvml.nvmlDeviceGetSerial(handle)) or None,
        "vbios": lambda handle: _text(nvml.nvmlDeviceGetVbiosVersion(handle)) or None,
    }
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        for name, getter in getters.items():
            try:
                read[name] = getter(handle)
            except nvml.NVMLError as refusal:
                if refusal.value not in _NOT_OFFERED:
                    raise
    except nvml.NVMLError as failure:
        error, code = f"NVML says: {failure}", failure.value
    return NvmlDevice(index, **{name: read.get(name) for name in getters}, error=error, error_code=code)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value


def main() -> None:
    """Print the answer as one JSON document."""
    import pynvml

    sys.stdout.write(msgspec.json.encode(read(pynvml)).decode() + "\n")


if __name__ == "__main__":
    main()
