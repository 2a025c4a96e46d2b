"""gpu-burn's complaints: which speak against the hardware, which say how it was set up wrong, and what to do then."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.tools.cuda_trouble import CAUSES, DRIVER_TOO_OLD, NO_DEVICE, NOT_READY, OUT_OF_MEMORY, UNAVAILABLE

# The driver's own words for a lost device and for memory or links that could not be corrected.
_HARDWARE = re.compile(
    r"uncorrectable (?:ECC|NVLink)|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|GPU is lost|fallen off the bus"
    r"|hardware stack error|HARDWARE_STACK_ERROR",
    re.IGNORECASE,
)
# Versions before 2015 tell of each wrong result.
_WRONG = re.compile(r"WE FOUND (?P<count>-?\d{1,12}) FAULTY ELEMENTS from GPU (?P<gpu>\d{1,4})")

# The first that matches is told. The order is that of the causes: what comes first explains what comes later.
_SETUP = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), cure)
    for pattern, cure in (
        (
            r"system not yet initialized|SYSTEM_NOT_READY",
            f"CUDA error {NOT_READY}: {CAUSES[NOT_READY].clause}",
        ),
        (
            r"No CUDA devices|No CUDA capable GPUs|no CUDA-capable device|Couldn't init CUDA|NVIDIA-SMI has failed|cuInit returned [1-9]",
            CAUSES[NO_DEVICE].clause,
        ),
        (
            r"Low mem for result",
            "there was no room for three results: end what else holds GPU memory, or allow more with -m",
        ),
        (r"out of memory|OUT_OF_MEMORY", f"{CAUSES[OUT_OF_MEMORY].clause}, or allow less with -m"),
        (
            r"couldn't find (?:compare kernel|file)|CUDA_ERROR_FILE_NOT_FOUND",
            "the compare kernel was not found: name compare.ptx with -c, or start gpu-burn where it lies",
        ),
        (
            r"load module|unsupported toolchain|kernel image|INVALID_PTX|INVALID_IMAGE|get func",
            "the compare kernel does not suit this GPU or driver: build it for this architecture with a CUDA no newer than the driver's",
        ),
        (
            r"ARCH_MISMATCH|STATUS_NOT_SUPPORTED",
            "cuBLAS cannot do this on this GPU: leave -tc out on cards without tensor cores",
        ),
        (r"driver version is insufficient|INSUFFICIENT_DRIVER", CAUSES[DRIVER_TOO_OLD].clause),
        (r"busy or unavailable|DEVICE_UNAVAILABLE", CAUSES[UNAVAILABLE].clause),
        (
            r"unsupported display driver|STATUS_NOT_INITIALIZED|initialization error|ERROR_NOT_INITIALIZED",
            "CUDA or cuBLAS could not start: match the libraries to the driver, and see that GPU memory is free",
        ),
        (
            r"error while loading shared libraries|cannot open shared object file",
            "a library is missing: install the CUDA version that gpu-burn was built with",
        ),
        (
            r"gpu[_-]burn: (?:command )?not found|gpu[_-]burn: No such file",
            "gpu-burn is not there: install it or give its path",
        ),
        (r"Syntax error near -|^GPU Burn$\s*^Usage:", "the command line was not understood: see gpu-burn -h"),
    )
)
_ABORT = re.compile(
    r"Couldn't init|Failure during compute|No clients are alive|terminate called|OS call failed|Segmentation fault|core dumped"
    r"|\bKilled$|read\[\d+\] error|CUDA_ERROR_|CUBLAS_STATUS_",
    re.MULTILINE,
)
_ALL_DEAD = re.compile(r"No clients are alive")
_NO_SMI = re.compile(r"nvidia-smi: (?:command )?not found|Could not invoke (?:nvidia-smi|tegrastats)")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was complained of, each the line as printed, or None.

    `hardware` speaks against the machine. `setup` has its cure in `cure`. `abort` is any other end before the time. `all_dead`: every
    process had died. `no_temperatures`: nvidia-smi is missing, which spoils nothing else but has been seen to crash gpu-burn. `wrong`:
    (GPU, wrong elements), from versions that tell of each.
    """

    hardware: str | None = None
    setup: str | None = None
    cure: str = ""
    abort: str | None = None
    all_dead: bool = False
    no_temperatures: bool = False
    wrong: tuple[tuple[int, int], ...] = ()


def find(text: str) -> Trouble:
    """Sort the complaints in a text without its progress lines. `wrong` holds (GPU, wrong elements) of versions that tell them."""
    setup, cure = next(((line, cure) for pattern, cure in _SETUP if (line := _told(pattern, text))), (None, ""))
    return Trouble(
        hardware=_told(_HARDWARE, text),
        setup=setup,
        cure=cure,
        abort=_told(_ABORT, text),
        all_dead=_ALL_DEAD.search(text) is not None,
        no_temperatures=_NO_SMI.search(text) is not None,
        wrong=tuple((int(match["gpu"]), int(match["count"])) for match in _WRONG.finditer(text)),
    )


def _told(pattern: re.Pattern[str], text: str) -> str | None:
    """The whole line of the first match."""
    match = pattern.search(text)
    if match is None:
        return None
    end = text.find("\n", match.start())
    return text[text.rfind("\n", 0, match.start()) + 1 : len(text) if end < 0 else end].strip()
