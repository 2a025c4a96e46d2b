"""CUDA's error codes as programs print them: what each means for a machine under test, and the cure, for every reader of such words.

Nearly all say that the program could not work (driver, permissions, fabric, another process) and nothing about the hardware; the few
that prove a fault are marked. Numbers are those of `cudaError_t`; below 100 some are of CUDA 10.0 and older, whose numbers were not
given anew (38 is 100 since CUDA 10.1, 39 is 214, 30 is 999).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptance.tools import reading

OUT_OF_MEMORY = 2
DRIVER_TOO_OLD = 35
UNAVAILABLE = 46
NO_DEVICE = 100
NOT_READY = 802


@dataclass(frozen=True, slots=True)
class Cause:
    """What went wrong and the cure, a clause each. `hardware`: the code itself proves a fault."""

    what: str
    cure: str
    hardware: bool = False

    @property
    def clause(self) -> str:
        """Both, for a reason."""
        return f"{self.what}; {self.cure}"


_NO_DEVICE_CAUSE = Cause(
    "CUDA sees no GPU, because of permissions, missing device nodes, a driver that is not loaded or CUDA_VISIBLE_DEVICES",
    "run nvidia-smi, look at the access rights of /dev/nvidia* (try as root), in a container at the GPU grant, unset CUDA_VISIBLE_DEVICES",
)
_UNKNOWN_CAUSE = Cause(
    "the driver gives no reason",
    "read the kernel log for Xid messages, then load nvidia_uvm and the driver anew or reboot",
)
_ECC_CAUSE = Cause(
    "the GPU read memory with an uncorrectable ECC error", "read nvidia-smi -q -d ECC,ROW_REMAPPER", True
)
_ORDINAL_CAUSE = Cause("there is no GPU of that number", "compare it with nvidia-smi -L and CUDA_VISIBLE_DEVICES")
_ADDRESS_CAUSE = Cause(
    "a kernel stopped on a bad address, which a wrong program or a wrong machine can cause",
    "read the kernel log for Xid messages and run it again",
)
_MPS_CAUSE = Cause("the multi-process service (MPS) does not serve it", "look at its server's log, or stop MPS")

CAUSES: Mapping[int, Cause] = {
    OUT_OF_MEMORY: Cause("another process holds the GPU's memory", "end the processes that nvidia-smi lists"),
    3: Cause(
        "the driver could not be initialised",
        "look for the modules nvidia and nvidia_uvm, for /dev/nvidia-uvm, and in MIG mode for an instance",
    ),
    10: _ORDINAL_CAUSE,
    30: _UNKNOWN_CAUSE,
    34: Cause("the toolkit's stub libcuda was loaded instead of the driver's", "take stubs out of LD_LIBRARY_PATH"),
    DRIVER_TOO_OLD: Cause(
        "the driver is too old for this program's CUDA runtime",
        "install a newer driver, or a program that was built with an older CUDA",
    ),
    36: Cause("the program asks for what this driver does not know yet", "install a newer driver"),
    38: _NO_DEVICE_CAUSE,
    39: _ECC_CAUSE,
    UNAVAILABLE: Cause(
        "the GPU is busy or its compute mode is exclusive or prohibited",
        "end foreign processes and look at nvidia-smi --query-gpu=compute_mode",
    ),
    77: _ADDRESS_CAUSE,
    NO_DEVICE: _NO_DEVICE_CAUSE,
    101: _ORDINAL_CAUSE,
    209: Cause("the program was not built for this GPU", "build it for the GPU's compute capability"),
    214: _ECC_CAUSE,
    220: Cause("NVLink had an uncorrectable error", "read nvidia-smi nvlink -e and the kernel log", True),
    222: Cause("the program was built with a CUDA newer than the driver", "install a newer driver"),
    304: Cause(
        "a call to the operating system failed",
        "look for /dev/nvidia-uvm and /dev/nvidia-caps in the container and at the limit of locked memory",
    ),
    700: _ADDRESS_CAUSE,
    702: Cause("a kernel ran into the display's time limit", "run it on a GPU that drives no display"),
    719: _ADDRESS_CAUSE,
    800: Cause("the operation is not permitted", "run it as root, or leave the restricting mode"),
    801: Cause("this system does not support the operation", "look at what the program asked for"),
    NOT_READY: Cause(
        "the NVSwitch fabric is not initialised: the fabric manager is not started or this VM's partition is not active",
        "start nvidia-fabricmanager in the driver's own version and read its log, or activate the partition on the host",
    ),
    803: Cause(
        "the kernel module and the user-space library of the driver are of different versions",
        "reboot, or unload and load the nvidia modules",
    ),
    804: Cause(
        "a forward-compatibility package (cuda-compat) was found, which works with data-centre GPUs and certain drivers only",
        "take cuda-compat out of LD_LIBRARY_PATH, or install a newer driver",
    ),
    **dict.fromkeys((805, 806, 807, 808, 809, 810), _MPS_CAUSE),
    999: _UNKNOWN_CAUSE,
}

_CALL = re.compile(r"\bcuda[A-Z]\w+ returned (?P<code>[1-9]\d{0,8})\b(?:\s*->\s*(?P<text>\S.*))?")
_FORMS = (
    _CALL,
    # helper_cuda.h: `CUDA error at FILE:LINE code=46(cudaErrorDevicesUnavailable) "cudaSetDevice(0)"`
    # No search runs past the next beginning: a line of nothing but beginnings would take hours.
    re.compile(r"\bCUDA error at \S(?:(?!CUDA error at ).)*?\bcode=(?P<code>[1-9]\d{0,8})\((?P<text>[^()]*)\)"),
    # `FILE(LINE) : getLastCudaError() CUDA error : words : (46) text.`
    re.compile(r"\bCUDA error : (?:(?!CUDA error : ).)*\((?P<code>[1-9]\d{0,8})\) (?P<text>.*?)\.?$"),
    # CUDA 5.0 and older: `cudaSafeCall() Runtime API error 38: text.`
    re.compile(r"\bRuntime API error (?P<code>[1-9]\d{0,8})\s*: (?P<text>.*?)\.?$"),
)
_ARROW = re.compile(r"^\s*->\s*(?P<text>\S.*)$")
# What the samples say in words alone.
_PHRASES = {
    "There are no available device(s) that support CUDA": NO_DEVICE,
    "There is no device supporting CUDA": NO_DEVICE,
    "!!!!!No devices found!!!!!": NO_DEVICE,
    "cudaGetDeviceCount FAILED": DRIVER_TOO_OLD,
    "device is running in <Compute Mode Prohibited>": UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class CudaError:
    """One error as printed: its code, and CUDA's words for it where they were printed."""

    code: int
    text: str | None

    @property
    def hardware(self) -> bool:
        """Whether the code itself proves a fault of the hardware."""
        return self.code in CAUSES and CAUSES[self.code].hardware

    def sentence(self) -> str:
        """Code, cause and cure, for a reason."""
        words = f" ({reading.quote(self.text)})" if self.text else ""
        cause = CAUSES.get(self.code)
        if cause is None:
            return f"CUDA error {self.code}{words}: look the number up under cudaError_t of the CUDA Runtime API"
        return f"CUDA error {self.code}{words}: {cause.clause}"


def find(lines: Sequence[str]) -> CudaError | None:
    """The error that the lines tell of: the first one that proves a hardware fault, else the first. None when there is none."""
    found: list[CudaError] = []
    inked = [line for line in lines if line.strip()]
    for line, following in itertools.pairwise([*inked, ""]):
        found += [CudaError(code, phrase.strip("!")) for phrase, code in _PHRASES.items() if phrase in line]
        for form in _FORMS:
            if match := form.search(line):
                text = match["text"]
                after = _ARROW.match(following) if form is _CALL else None
                found.append(CudaError(int(match["code"]), text or (after["text"] if after else None)))
                break
    return next((error for error in found if error.hardware), found[0] if found else None)
