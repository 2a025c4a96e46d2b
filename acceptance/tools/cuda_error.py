"""What CUDA, NVML and the shell say in words when a tool could not do its work, and what to do about it.

nvbandwidth and p2pBandwidthLatencyTest print the driver's names and sentences; programs that print numbers are `cuda_trouble`'s, which
has the causes that both know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from acceptance.tools.cuda_trouble import CAUSES, DRIVER_TOO_OLD, NO_DEVICE, NOT_READY, OUT_OF_MEMORY, UNAVAILABLE
from acceptance.tools.reading import quote

# The sentence of the driver or of the shell that a finished run never prints.
_DIED = re.compile(
    r"Cuda failure|\bCUDA error\b|CUDA Runtime Error|cudaSafeCall|\[CUDA_ERROR_\w+\]|\[cudaError\w+\]|NVML_ERROR"
    r"|Failed to create stop watch|Segmentation fault|^Aborted\b|\(core dumped\)|^Killed\b|terminate called",
    re.IGNORECASE,
)
# What the CUDA runtime and driver call an error, of whatever program: nothing that follows one counts.
_CUDA = re.compile(
    r"\bCUDA(?: runtime| driver)? (?:error|failure)\b|\bCUDA_ERROR_[A-Z]|\bcudaError(?!_t\b)[A-Z]"
    r"|\bCUBLAS_STATUS_(?!SUCCESS)[A-Z]|illegal memory access|unspecified launch failure"
    r"|misaligned address|illegal instruction was encountered|device-side assert triggered",
    re.IGNORECASE,
)
# Said before the tool started, perhaps of another command: it counts only where nothing of the tool follows.
_NOT_STARTED = re.compile(
    r"error while loading shared libraries|command not found|No such file or directory|Permission denied"
    r"|GPUs? not found|\bwaived\b|at least \d+ GPUs?|Exec format error",
    re.IGNORECASE,
)
# The hardware itself is named: no software cause is left.
_FAULT = re.compile(
    r"(?:ECC|NVLINK)_?Uncorrectable|uncorrectable (?:ECC|NVLink)|GPU is lost|fallen off the bus", re.IGNORECASE
)
_CURES = (
    (
        re.compile(r"no CUDA-capable device|NO_DEVICE|NoDevice|GPUs? not found", re.IGNORECASE),
        CAUSES[NO_DEVICE].clause,
    ),
    (
        re.compile(r"not yet initialized|SYSTEM_NOT_READY|SystemNotReady", re.IGNORECASE),
        f"CUDA error {NOT_READY}: {CAUSES[NOT_READY].clause}",
    ),
    (
        re.compile(r"driver version is insufficient|unsupported toolchain|INSUFFICIENT_DRIVER", re.IGNORECASE),
        CAUSES[DRIVER_TOO_OLD].clause,
    ),
    (
        re.compile(r"library version mismatch", re.IGNORECASE),
        "the driver was updated and its old module is still loaded: reboot",
    ),
    (
        re.compile(r"no kernel image|NO_BINARY_FOR_GPU|NoKernelImage", re.IGNORECASE),
        "the tool was not built for this GPU's architecture: build it for it",
    ),
    (
        re.compile(r"out of memory|OUT_OF_MEMORY|MemoryAllocation", re.IGNORECASE),
        CAUSES[OUT_OF_MEMORY].clause,
    ),
    (
        re.compile(r"busy or unavailable|DEVICE_UNAVAILABLE|DevicesUnavailable", re.IGNORECASE),
        CAUSES[UNAVAILABLE].clause,
    ),
    (
        re.compile(r"launch failure|illegal memory access|LAUNCH_FAILED|ILLEGAL_ADDRESS|timed out", re.IGNORECASE),
        "the GPU stopped in the middle: look for an Xid with `sudo dmesg -T | grep -i xid`",
    ),
    (
        re.compile(r"loading shared libraries", re.IGNORECASE),
        "a library is missing: install it, or in a container let the engine inject the driver's",
    ),
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a tool did no work: one sentence, and whether it names a fault of the hardware itself."""

    reason: str
    hardware: bool


def _trouble(line: str) -> Trouble:
    cure = next((cure for pattern, cure in _CURES if pattern.search(line)), None)
    return Trouble(f"it died: '{quote(line)}'" + (f" ({cure})" if cure else ""), bool(_FAULT.search(line)))


def died(lines: Iterable[str]) -> Trouble | None:
    """Why a run died: the first line that names a fault of the hardware, else the first that only such a run prints; None without one."""
    found = [_trouble(line) for line in lines if _DIED.search(line.strip())]
    return next((trouble for trouble in found if trouble.hardware), found[0] if found else None)


def find(lines: Iterable[str]) -> Trouble | None:
    """The CUDA error that a program told of in words, though its text may call the run a pass.

    None without one. The first line that names a fault of the hardware comes before the others.
    """
    found = [_trouble(line) for line in lines if _CUDA.search(line)]
    trouble = next((one for one in found if one.hardware), found[0] if found else None)
    if trouble is None:
        return None
    reason = trouble.reason.replace("it died", "CUDA reported an error", 1)
    return Trouble(reason, trouble.hardware)


def not_started(lines: Iterable[str]) -> str | None:
    """Why the tool never began, for a text that holds nothing of the tool's own; None when the text does not say."""
    line = next((line for line in lines if _NOT_STARTED.search(line)), None)
    return None if line is None else _trouble(line).reason.replace("it died", "it did not start", 1)
