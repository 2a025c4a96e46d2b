"""What a tool's run proves: its text, its exit and its duration are judged together.

Error messages of CUDA, NVML and the shell from a tool that could not do its work come with fixes:
nvbandwidth and p2pBandwidthLatencyTest print the driver's error names and sentences; programs that
print error numbers are read by `find_code`. Both use the same causes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acceptance.core.message import Message, Single, Value, english, known
from acceptance.core.plain_text import quote
from acceptance.machine.thresholds import thresholds
from acceptance.process.command import ProgramResult
from acceptance.process.unreadable import UnreadableOutput
from acceptance.tools.reading import ToolOutput, foreign
from acceptance.wording.errors import WordedError

OUT_OF_MEMORY = 2
DRIVER_TOO_OLD = 35
UNAVAILABLE = 46
NO_DEVICE = 100
NOT_READY = 802


# Cause and fix of each code.
CAUSES: Mapping[int, Message] = {
    OUT_OF_MEMORY: Message(
        english(
            "cuda_memory_held",
            "another process holds the GPU's memory; end the processes that nvidia-smi lists",
        )
    ),
    3: Message(
        english(
            "cuda_not_initialised",
            "the driver could not be initialised; look for the modules nvidia and nvidia_uvm, for "
            "/dev/nvidia-uvm, and in MIG mode for an instance",
        )
    ),
    10: Message(
        english(
            "cuda_no_such_gpu",
            "there is no GPU of that number; compare it with nvidia-smi -L and "
            "CUDA_VISIBLE_DEVICES",
        )
    ),
    30: Message(
        english(
            "cuda_no_reason",
            "the driver gives no reason; read the kernel log for Xid messages, then load "
            "nvidia_uvm and the driver anew or reboot",
        )
    ),
    34: Message(
        english(
            "cuda_stub_loaded",
            "the toolkit's stub libcuda was loaded instead of the driver's; take stubs out of "
            "LD_LIBRARY_PATH",
        )
    ),
    DRIVER_TOO_OLD: Message(
        english(
            "cuda_driver_too_old",
            "the driver is too old for this program's CUDA runtime; install a newer driver, or a "
            "program that was built with an older CUDA",
        )
    ),
    36: Message(
        english(
            "cuda_driver_lacks_call",
            "the program asks for what this driver does not know yet; install a newer driver",
        )
    ),
    38: Message(
        english(
            "cuda_no_gpu",
            "CUDA sees no GPU, because of permissions, missing device nodes, a driver that is not "
            "loaded or CUDA_VISIBLE_DEVICES; run nvidia-smi, look at the access rights of "
            "/dev/nvidia* (try as root), in a container at the GPU grant, unset "
            "CUDA_VISIBLE_DEVICES",
        )
    ),
    39: Message(
        english(
            "cuda_ecc_error",
            "the GPU read memory with an uncorrectable ECC error; read nvidia-smi -q -d "
            "ECC,ROW_REMAPPER",
        )
    ),
    UNAVAILABLE: Message(
        english(
            "cuda_gpu_busy",
            "the GPU is busy or its compute mode is exclusive or prohibited; end foreign "
            "processes and look at nvidia-smi --query-gpu=compute_mode",
        )
    ),
    77: Message(
        english(
            "cuda_bad_address",
            "a kernel stopped on a bad address, which a wrong program or a wrong machine can "
            "cause; read the kernel log for Xid messages and run it again",
        )
    ),
    NO_DEVICE: Message("cuda_no_gpu"),
    101: Message("cuda_no_such_gpu"),
    209: Message(
        english(
            "cuda_not_built_for_gpu",
            "the program was not built for this GPU; build it for the GPU's compute capability",
        )
    ),
    214: Message("cuda_ecc_error"),
    220: Message(
        english(
            "cuda_nvlink_error",
            "NVLink had an uncorrectable error; read nvidia-smi nvlink -e and the kernel log",
        )
    ),
    222: Message(
        english(
            "cuda_newer_than_driver",
            "the program was built with a CUDA newer than the driver; install a newer driver",
        )
    ),
    304: Message(
        english(
            "cuda_system_call_failed",
            "a call to the operating system failed; look for /dev/nvidia-uvm and /dev/nvidia-caps "
            "in the container and at the limit of locked memory",
        )
    ),
    700: Message("cuda_bad_address"),
    702: Message(
        english(
            "cuda_display_time_limit",
            "a kernel ran into the display's time limit; run it on a GPU that drives no display",
        )
    ),
    719: Message("cuda_bad_address"),
    800: Message(
        english(
            "cuda_not_permitted",
            "the operation is not permitted; run it as root, or leave the restricting mode",
        )
    ),
    801: Message(
        english(
            "cuda_not_supported",
            "this system does not support the operation; look at what the program asked for",
        )
    ),
    NOT_READY: Message(
        english(
            "cuda_fabric_not_ready",
            "the NVSwitch fabric is not initialised: the fabric manager is not started or this "
            "VM's partition is not active; start nvidia-fabricmanager in the driver's own version "
            "and read its log, or activate the partition on the host",
        )
    ),
    803: Message(
        english(
            "cuda_versions_differ",
            "the kernel module and the user-space library of the driver are of different "
            "versions; reboot, or unload and load the nvidia modules",
        )
    ),
    804: Message(
        english(
            "cuda_compat_found",
            "a forward-compatibility package (cuda-compat) was found, which works with "
            "data-centre GPUs and certain drivers only; take cuda-compat out of LD_LIBRARY_PATH, "
            "or install a newer driver",
        )
    ),
    **dict.fromkeys(
        (805, 806, 807, 808, 809, 810),
        Message(
            english(
                "cuda_no_mps",
                "the multi-process service (MPS) does not serve it; look at its server's log, or "
                "stop MPS",
            )
        ),
    ),
    999: Message("cuda_no_reason"),
}
# The codes that prove a fault of the hardware themselves.
HARDWARE = frozenset({39, 214, 220})


def numbered(code: int, text: str | None = None) -> Message:
    """Code, cause and fix in one clause, with CUDA's own `text` for it."""
    cause = CAUSES.get(
        code,
        Message(
            english(
                "cuda_error_unknown", "look the number up under cudaError_t of the CUDA Runtime API"
            )
        ),
    )
    quoted = quote(text) if text else None
    return Message(
        english("cuda_error", "CUDA error {number}[ ({text})]: {why}"),
        known(number=code, text=quoted, why=cause),
    )


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
        return self.code in HARDWARE

    @property
    def reason(self) -> Message:
        """Code, cause and fix in one clause."""
        return numbered(self.code, self.text)


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
    r"|Failed to create stop watch|Segmentation fault|^(?:Aborted|Killed|Bus error"
    r"|Illegal instruction|Floating point exception)\b|\(core dumped\)|terminate called",
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
        CAUSES[NO_DEVICE],
    ),
    (
        re.compile(r"not yet initialized|SYSTEM_NOT_READY|SystemNotReady", re.IGNORECASE),
        numbered(NOT_READY),
    ),
    (
        re.compile(
            r"driver version is insufficient|unsupported toolchain|INSUFFICIENT_DRIVER",
            re.IGNORECASE,
        ),
        CAUSES[DRIVER_TOO_OLD],
    ),
    (
        re.compile(r"library version mismatch", re.IGNORECASE),
        Message("driver_module_old"),
    ),
    (
        re.compile(r"no kernel image|NO_BINARY_FOR_GPU|NoKernelImage", re.IGNORECASE),
        Message(
            english(
                "tool_not_built_for_gpu",
                "the tool was not built for this GPU's architecture: build it for it",
            )
        ),
    ),
    (
        re.compile(r"out of memory|OUT_OF_MEMORY|MemoryAllocation", re.IGNORECASE),
        CAUSES[OUT_OF_MEMORY],
    ),
    (
        re.compile(r"busy or unavailable|DEVICE_UNAVAILABLE|DevicesUnavailable", re.IGNORECASE),
        CAUSES[UNAVAILABLE],
    ),
    (
        re.compile(
            r"launch failure|illegal memory access|LAUNCH_FAILED|ILLEGAL_ADDRESS|timed out",
            re.IGNORECASE,
        ),
        Message(
            english(
                "gpu_stopped",
                "the GPU stopped in the middle: look for an Xid with `sudo dmesg -T | grep -i xid`",
            )
        ),
    ),
    (
        re.compile(r"loading shared libraries", re.IGNORECASE),
        Message(
            english(
                "library_missing",
                "a library is missing: install it, or in a container let the engine inject the "
                "driver's",
            )
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """The line that says why a tool did no work, and whether it names a hardware fault itself."""

    reason: Message
    hardware: bool


def _quoted(line: str) -> dict[str, Value]:
    """The line and the fix, where it is known."""
    cure = next((cure for pattern, cure in _CURES if pattern.search(line)), None)
    return known(line=quote(line), cure=cure)


def _worst(lines: Iterable[str]) -> str | None:
    """The first line that names a hardware fault, else the first."""
    found = list(lines)
    return next((line for line in found if _FAULT.search(line)), found[0] if found else None)


def crash_reason(lines: Iterable[str]) -> ToolFailure | None:
    """Why a run died, or None.

    It is the first line that names a hardware fault, else the first line that no finished run
    prints.
    """
    line = _worst(line for line in lines if _DIED.search(line.strip()))
    return (
        None
        if line is None
        else ToolFailure(Message("tool_died", _quoted(line)), bool(_FAULT.search(line)))
    )


def find(lines: Iterable[str]) -> ToolFailure | None:
    """A CUDA error or a lost GPU, in words, even if the text calls the run a pass; or None.

    The first line that names a hardware fault comes before the others.
    """
    line = _worst(line for line in lines if _CUDA.search(line) or _FAULT.search(line))
    if line is None:
        return None
    return ToolFailure(
        Message(
            english("cuda_reported", "CUDA reported an error: '{line}'[ ({cure})]"), _quoted(line)
        ),
        bool(_FAULT.search(line)),
    )


def trouble(lines: Sequence[str]) -> ToolFailure | None:
    """Why no result of the lines counts: the program died, or printed an error; or None.

    What names a hardware fault comes before the others.
    """
    found = [failure for failure in (crash_reason(lines), find(lines)) if failure is not None]
    return next((one for one in found if one.hardware), found[0] if found else None)


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
    return ToolOutput(
        tool,
        "error",
        Message(
            english("tool_not_started", "it did not start: '{line}'[ ({cure})]"), _quoted(line)
        ),
    )


class ToolError(WordedError):
    """A tool ran and proves nothing, so the hardware stays unjudged."""


class Unnamed(ToolError):
    """A tool ended well, and says in words that need not name it why it proves nothing."""


def prove(
    tool: str, done: ProgramResult, parse: Callable[[str], ToolOutput], seconds: float
) -> ToolOutput:
    """Judge a tool's run that was to last at least `seconds`.

    A fault in the text is a fault, however the run ended. Any other text counts only if it is
    complete and readable, and if the program exited with 0 and not too early: a healthy text from a
    program that failed or did not load the machine proves nothing. A text with a CUDA error beside
    it proves nothing either, even with exit code 0.

    Raises ToolError when the run proves nothing.
    """
    troubles: list[Single] = []
    if done.timed_out or done.returncode != 0:
        troubles.append(
            Message(english("tool_ended", "{tool} {how}"), {"tool": tool, "how": done.describe()})
        )
    elif done.seconds < thresholds().program.ran * seconds:
        values = {"tool": tool, "ran": f"{done.seconds:.1f}", "due": f"{seconds:.0f}"}
        troubles.append(
            Message(
                english(
                    "tool_ended_early",
                    "{tool} ended after {ran} s and was to load the machine for {due} s",
                ),
                values,
            )
        )
    if done.truncated:
        troubles.append(
            Message(
                english(
                    "tool_output_lost",
                    "{tool} printed more than is kept, or its output was not read to the end",
                ),
                {"tool": tool},
            )
        )
    try:
        output = parse(done.text)
    except UnreadableOutput as error:
        raise ToolError("clauses", why=(*troubles, error.message)) from error
    if output.outcome == "fail":
        return output
    if output.outcome == "error":
        troubles.append(output.reason)
    elif trouble := find(done.text.splitlines()):
        troubles.append(Message("tool_says", {"tool": tool, "why": trouble.reason}))
    if troubles:
        last = done.last_lines(2)
        said = (
            Message(english("last_said", "it last said: {text}"), {"text": last})
            if last
            else Message("printed_nothing")
        )
        unproved = Unnamed if troubles == [output.reason] else ToolError
        raise unproved("clauses", why=(*troubles, said))
    return output


def option(argv: Sequence[str], name: str) -> int:
    """The number behind an option of a program's command line, perhaps of seconds (`36s`).

    Raises ToolError where there is none: what the program was asked is then not known.
    """
    for word, value in pairwise(argv):
        if word == name and value.removesuffix("s").isdecimal():
            return int(value.removesuffix("s"))
    raise ToolError(
        english(
            "command_line_lacks",
            "the command line of the program has no number behind {option}: what it was asked is "
            "not known",
        ),
        option=name,
    )
