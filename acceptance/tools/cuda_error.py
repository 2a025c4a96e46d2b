"""Error messages of CUDA, NVML and the shell from a tool that could not do its work, with fixes.

nvbandwidth and p2pBandwidthLatencyTest print the driver's error names and sentences. Programs that
print error numbers are read by `find_code`. Both use the same causes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core import plain_text
from acceptance.core.plain_text import quote
from acceptance.tools.reading import ToolOutput, foreign

OUT_OF_MEMORY = 2
DRIVER_TOO_OLD = 35
UNAVAILABLE = 46
NO_DEVICE = 100
NOT_READY = 802


@dataclass(frozen=True, slots=True)
class ErrorCause:
    """Cause and fix, a clause each. `hardware`: the code itself proves a fault."""

    what: str
    cure: str
    hardware: bool = False

    @property
    def clause(self) -> str:
        """Cause and fix in one clause."""
        return f"{self.what}; {self.cure}"


_NO_DEVICE_CAUSE = ErrorCause(
    (
        "CUDA sees no GPU, because of permissions, missing device nodes, a driver that is not "
        "loaded or CUDA_VISIBLE_DEVICES"
    ),
    (
        "run nvidia-smi, look at the access rights of /dev/nvidia* (try as root), in a container "
        "at the GPU grant, unset CUDA_VISIBLE_DEVICES"
    ),
)
_UNKNOWN_CAUSE = ErrorCause(
    "the driver gives no reason",
    "read the kernel log for Xid messages, then load nvidia_uvm and the driver anew or reboot",
)
_ECC_CAUSE = ErrorCause(
    "the GPU read memory with an uncorrectable ECC error",
    "read nvidia-smi -q -d ECC,ROW_REMAPPER",
    True,
)
_ORDINAL_CAUSE = ErrorCause(
    "there is no GPU of that number", "compare it with nvidia-smi -L and CUDA_VISIBLE_DEVICES"
)
_ADDRESS_CAUSE = ErrorCause(
    "a kernel stopped on a bad address, which a wrong program or a wrong machine can cause",
    "read the kernel log for Xid messages and run it again",
)
_MPS_CAUSE = ErrorCause(
    "the multi-process service (MPS) does not serve it", "look at its server's log, or stop MPS"
)

CAUSES: Mapping[int, ErrorCause] = {
    OUT_OF_MEMORY: ErrorCause(
        "another process holds the GPU's memory", "end the processes that nvidia-smi lists"
    ),
    3: ErrorCause(
        "the driver could not be initialised",
        (
            "look for the modules nvidia and nvidia_uvm, for /dev/nvidia-uvm, and in MIG mode "
            "for an instance"
        ),
    ),
    10: _ORDINAL_CAUSE,
    30: _UNKNOWN_CAUSE,
    34: ErrorCause(
        "the toolkit's stub libcuda was loaded instead of the driver's",
        "take stubs out of LD_LIBRARY_PATH",
    ),
    DRIVER_TOO_OLD: ErrorCause(
        "the driver is too old for this program's CUDA runtime",
        "install a newer driver, or a program that was built with an older CUDA",
    ),
    36: ErrorCause(
        "the program asks for what this driver does not know yet", "install a newer driver"
    ),
    38: _NO_DEVICE_CAUSE,
    39: _ECC_CAUSE,
    UNAVAILABLE: ErrorCause(
        "the GPU is busy or its compute mode is exclusive or prohibited",
        "end foreign processes and look at nvidia-smi --query-gpu=compute_mode",
    ),
    77: _ADDRESS_CAUSE,
    NO_DEVICE: _NO_DEVICE_CAUSE,
    101: _ORDINAL_CAUSE,
    209: ErrorCause(
        "the program was not built for this GPU", "build it for the GPU's compute capability"
    ),
    214: _ECC_CAUSE,
    220: ErrorCause(
        "NVLink had an uncorrectable error", "read nvidia-smi nvlink -e and the kernel log", True
    ),
    222: ErrorCause(
        "the program was built with a CUDA newer than the driver", "install a newer driver"
    ),
    304: ErrorCause(
        "a call to the operating system failed",
        (
            "look for /dev/nvidia-uvm and /dev/nvidia-caps in the container and at the limit of "
            "locked memory"
        ),
    ),
    700: _ADDRESS_CAUSE,
    702: ErrorCause(
        "a kernel ran into the display's time limit", "run it on a GPU that drives no display"
    ),
    719: _ADDRESS_CAUSE,
    800: ErrorCause(
        "the operation is not permitted", "run it as root, or leave the restricting mode"
    ),
    801: ErrorCause(
        "this system does not support the operation", "look at what the program asked for"
    ),
    NOT_READY: ErrorCause(
        (
            "the NVSwitch fabric is not initialised: the fabric manager is not started or this "
            "VM's partition is not active"
        ),
        (
            "start nvidia-fabricmanager in the driver's own version and read its log, or "
            "activate the partition on the host"
        ),
    ),
    803: ErrorCause(
        "the kernel module and the user-space library of the driver are of different versions",
        "reboot, or unload and load the nvidia modules",
    ),
    804: ErrorCause(
        (
            "a forward-compatibility package (cuda-compat) was found, which works with "
            "data-centre GPUs and certain drivers only"
        ),
        "take cuda-compat out of LD_LIBRARY_PATH, or install a newer driver",
    ),
    **dict.fromkeys((805, 806, 807, 808, 809, 810), _MPS_CAUSE),
    999: _UNKNOWN_CAUSE,
}

_CALL = re.compile(r"\bcuda[A-Z]\w+ returned (?P<code>[1-9]\d{0,8})\b(?:\s*->\s*(?P<text>\S.*))?")
_FORMS = (
    _CALL,
    # helper_cuda.h: `CUDA error at FILE:LINE code=46(cudaErrorDevicesUnavailable)
    # "cudaSetDevice(0)"` No search runs past the next beginning: a line of many beginnings would
    # take hours.
    re.compile(
        r"\bCUDA error at \S(?:(?!CUDA error at "
        r").)*?\bcode=(?P<code>[1-9]\d{0,8})\((?P<text>[^()]*)\)"
    ),
    # `FILE(LINE) : getLastCudaError() CUDA error : words : (46) text.`
    re.compile(
        r"\bCUDA error : (?:(?!CUDA error : ).)*\((?P<code>[1-9]\d{0,8})\) (?P<text>.*?)\.?$"
    ),
    # CUDA 5.0 and older: `cudaSafeCall() Runtime API error 38: text.`
    re.compile(r"\bRuntime API error (?P<code>[1-9]\d{0,8})\s*: (?P<text>.*?)\.?$"),
)
_ARROW = re.compile(r"^\s*->\s*(?P<text>\S.*)$")
# Errors that the samples print in words only.
_PHRASES = {
    "There are no available device(s) that support CUDA": NO_DEVICE,
    "There is no device supporting CUDA": NO_DEVICE,
    "!!!!!No devices found!!!!!": NO_DEVICE,
    "cudaGetDeviceCount FAILED": DRIVER_TOO_OLD,
    "device is running in <Compute Mode Prohibited>": UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class CudaError:
    """One error as printed: its code, and CUDA's text for it if it was printed."""

    code: int
    text: str | None

    @property
    def hardware(self) -> bool:
        """Whether the code itself proves a fault of the hardware."""
        return self.code in CAUSES and CAUSES[self.code].hardware

    @property
    def reason(self) -> str:
        """Code, cause and fix in one clause."""
        words = f" ({plain_text.quote(self.text)})" if self.text else ""
        cause = CAUSES.get(self.code)
        if cause is None:
            return (
                f"CUDA error {self.code}{words}: look the number up under cudaError_t of the "
                "CUDA Runtime API"
            )
        return f"CUDA error {self.code}{words}: {cause.clause}"


def find_code(lines: Sequence[str]) -> CudaError | None:
    """The first error in the lines that proves a hardware fault, else the first error.

    None if there is no error.
    """
    found: list[CudaError] = []
    inked = [line for line in lines if line.strip()]
    for line, following in itertools.pairwise([*inked, ""]):
        found += [
            CudaError(code, phrase.strip("!"))
            for phrase, code in _PHRASES.items()
            if phrase in line
        ]
        for form in _FORMS:
            if match := form.search(line):
                text = match["text"]
                after = _ARROW.match(following) if form is _CALL else None
                found.append(
                    CudaError(int(match["code"]), text or (after["text"] if after else None))
                )
                break
    return next((error for error in found if error.hardware), found[0] if found else None)


# Sentences of the driver or the shell that a finished run never prints.
_DIED = re.compile(
    r"Cuda failure|\bCUDA error\b|CUDA Runtime "
    r"Error|cudaSafeCall|\[CUDA_ERROR_\w+\]|\[cudaError\w+\]|NVML_ERROR"
    r"|Failed to create stop watch|Segmentation fault|^Aborted\b|\(core "
    r"dumped\)|^Killed\b|terminate called",
    re.IGNORECASE,
)
# Names of errors in the CUDA runtime and driver, from any program: no result after one counts.
_CUDA = re.compile(
    r"\bCUDA(?: runtime| driver)? (?:error|failure)\b|\bCUDA_ERROR_[A-Z]|\bcudaError(?!_t\b)[A-Z]"
    r"|\bCUBLAS_STATUS_(?!SUCCESS)[A-Z]|illegal memory access|unspecified launch failure"
    r"|misaligned address|illegal instruction was encountered|device-side assert triggered",
    re.IGNORECASE,
)
# Messages from before the tool started, perhaps of another command: one counts only if no output of
# the tool follows.
_NOT_STARTED = re.compile(
    r"error while loading shared libraries|command not found|No such file or directory|Permission "
    r"denied"
    r"|GPUs? not found|\bwaived\b|at least \d+ GPUs?|Exec format error",
    re.IGNORECASE,
)
# Messages that name the hardware itself, so that no software cause is left.
_FAULT = re.compile(
    r"(?:ECC|NVLINK)_?Uncorrectable|uncorrectable (?:ECC|NVLink)|GPU is lost|fallen off the bus",
    re.IGNORECASE,
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
        re.compile(
            r"driver version is insufficient|unsupported toolchain|INSUFFICIENT_DRIVER",
            re.IGNORECASE,
        ),
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
        re.compile(
            r"launch failure|illegal memory access|LAUNCH_FAILED|ILLEGAL_ADDRESS|timed out",
            re.IGNORECASE,
        ),
        "the GPU stopped in the middle: look for an Xid with `sudo dmesg -T | grep -i xid`",
    ),
    (
        re.compile(r"loading shared libraries", re.IGNORECASE),
        "a library is missing: install it, or in a container let the engine inject the driver's",
    ),
)


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """Why a tool did no work: one sentence, and whether it names a hardware fault itself."""

    reason: str
    hardware: bool


def _trouble(line: str) -> ToolFailure:
    cure = next((cure for pattern, cure in _CURES if pattern.search(line)), None)
    return ToolFailure(
        f"it died: '{quote(line)}'" + (f" ({cure})" if cure else ""), bool(_FAULT.search(line))
    )


def crash_reason(lines: Iterable[str]) -> ToolFailure | None:
    """Why a run died, or None.

    It is the first line that names a hardware fault, else the first line that no finished run
    prints.
    """
    found = [_trouble(line) for line in lines if _DIED.search(line.strip())]
    return next((trouble for trouble in found if trouble.hardware), found[0] if found else None)


def find(lines: Iterable[str]) -> ToolFailure | None:
    """A CUDA error that a program printed in words, even if its text calls the run a pass; or None.

    The first line that names a hardware fault comes before the others.
    """
    found = [_trouble(line) for line in lines if _CUDA.search(line)]
    trouble = next((one for one in found if one.hardware), found[0] if found else None)
    if trouble is None:
        return None
    reason = trouble.reason.replace("it died", "CUDA reported an error", 1)
    return ToolFailure(reason, trouble.hardware)


def outcome(tool: str, trouble: CudaError | ToolFailure) -> ToolOutput:
    """The outcome of a text with an error: a *fail* only if it names a fault of the hardware."""
    return ToolOutput(tool, "fail" if trouble.hardware else "error", trouble.reason)


def not_started(tool: str, text: str, lines: Iterable[str]) -> ToolOutput:
    """The outcome of a text without any output of the tool: why it did not start.

    Raises UnreadableOutput if the text does not say.
    """
    line = next((line for line in lines if _NOT_STARTED.search(line)), None)
    if line is None:
        raise foreign(tool, text)
    reason = _trouble(line).reason.replace("it died", "it did not start", 1)
    return ToolOutput(tool, "error", reason)
