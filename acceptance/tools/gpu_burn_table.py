"""What frames gpu-burn's progress: the lines before it, and the table of results that ends it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.tools import reading
from acceptance.tools.gpu_burn_command import Mode
from acceptance.tools.gpu_burn_progress import TOOL
from acceptance.tools.reading import GpuEntry

_TESTED = re.compile(r"\bTested (?P<gpus>\d{1,4}) GPUs?:")
# `nvidia-smi -L` prints `GPU 0: NVIDIA ...` above, so the word after the colon decides.
_VERDICT = re.compile(r"\bGPU (?P<gpu>\d{1,4}): *(?P<verdict>OK|FAULTY)\b")
# Versions before 2016 do not say what they multiply.
_DEVICE = re.compile(
    r"Initialized device (?P<gpu>\d{1,4}) with (?P<total>\d+) MB of memory"
    r" \((?P<free>\d+) MB available, using (?P<used>\d+) MB of it\)"
    r"(?:, using (?P<kind>FLOATS|DOUBLES)(?P<tensor>, using Tensor Cores)?)?"
)
# A GPU as `nvidia-smi -L` lists it, which gpu-burn runs first: all that the driver knows, in its order.
_LISTED = re.compile(r"^[ \t]*GPU (?P<index>\d{1,4}): (?P<name>\S.*?) \(UUID: (?P<uuid>\S+?)\)[ \t]*$", re.MULTILINE)
_SECONDS = re.compile(r"Burning for (?P<seconds>\d+) sec", re.IGNORECASE)
_RING = re.compile(r"Results are (?P<bytes>\d+) bytes each, thus performing (?P<results>\d+) iterations")
_OURS = re.compile(
    r"run length not specified in the command line|Using compare file:|Burning for \d+ sec|Killing processes|Uninitted cublas",
    re.IGNORECASE,
)
_ELIDED = re.compile(r"^[ \t>*#=\[(<-]*(?:\.{3}|…)|\bsnip\b|\belided\b|similar lines", re.IGNORECASE | re.MULTILINE)
_WINDOWS = re.compile(r"^Terminating threads$", re.MULTILINE)
_MEGABYTE = 2**20
# 8192 x 8192 numbers: all versions that print the size of a result multiply such matrices.
_RESULT_BYTES = {"FLOATS": 4 * 8192**2, "DOUBLES": 8 * 8192**2}


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as its process found it; sizes in MB of 2^20 bytes, `mode` None where the text does not say it."""

    gpu: int
    total_mb: int
    free_mb: int
    used_mb: int
    mode: Mode | None


@dataclass(frozen=True, slots=True)
class Frame:
    """The lines around the progress.

    `tested`: the number of each table's head; `verdicts`: (GPU, OK or FAULTY) as they come; `rings`: results of each ring as printed;
    `by_device`: the same by device, as far as it follows from the memory used; `elided`: the poster left lines out and said so;
    `windows`: the build that may end before it shows 100 %; `ours`: some line is gpu-burn's. `listed`: the
    GPUs of `nvidia-smi -L`; `devices`: those that were initialised; `seconds`: each time that it was to burn for.
    """

    tested: tuple[int, ...]
    verdicts: tuple[tuple[int, str], ...]
    rings: tuple[int, ...]
    by_device: dict[int, int]
    elided: bool
    windows: bool
    ours: bool
    listed: tuple[GpuEntry, ...]
    devices: tuple[Device, ...]
    seconds: tuple[int, ...]
    result_bytes: frozenset[int]

    def faulty(self) -> list[int]:
        """The GPUs that are called FAULTY."""
        return sorted({gpu for gpu, verdict in self.verdicts if verdict == "FAULTY"})

    def contradiction(self) -> str | None:
        """Where the lines before the progress gainsay one another, or None."""
        if twice := reading.duplicate(self.listed):
            return f"its list of GPUs names {twice} twice"
        if len(self.seconds) > 1:
            return f"it burned for {' and for '.join(map(str, self.seconds))} s: give one run at a time"
        for device in self.devices:
            if not device.used_mb <= device.free_mb <= device.total_mb:
                return (
                    f"device {device.gpu} has {device.total_mb} MB of memory, {device.free_mb} MB of it"
                    f" available and {device.used_mb} MB in use, which cannot be"
                )
        return self._mode_contradiction()

    def _mode_contradiction(self) -> str | None:
        modes = sorted({device.mode for device in self.devices if device.mode is not None})
        if len(modes) > 1:
            return f"some of its devices work in mode {modes[0]} and some in mode {modes[1]}"
        for mode in modes:
            kind, other = ("DOUBLES", "FLOATS") if mode == "double" else ("FLOATS", "DOUBLES")
            if _RESULT_BYTES[other] in self.result_bytes:
                return f"it uses {kind} and a result has the {_RESULT_BYTES[other]} bytes of {other}"
        return None


def read(text: str) -> Frame:
    """The frame in a text without its progress lines."""
    rings = list(_RING.finditer(text))
    devices = list(_DEVICE.finditer(text))
    tested = tuple(int(match["gpus"]) for match in _TESTED.finditer(text))
    verdicts = tuple((int(match["gpu"]), match["verdict"]) for match in _VERDICT.finditer(text))
    return Frame(
        tested=tested,
        verdicts=verdicts,
        rings=tuple(_whole(match, "results") for match in rings),
        by_device=_by_device(rings, devices),
        elided=_ELIDED.search(text) is not None,
        windows=_WINDOWS.search(text) is not None,
        ours=bool(rings or devices or tested or verdicts) or _OURS.search(text) is not None,
        listed=_listed(text),
        devices=tuple(dict.fromkeys(map(_device, devices))),
        seconds=tuple(dict.fromkeys(_whole(match, "seconds") for match in _SECONDS.finditer(text))),
        result_bytes=frozenset(_whole(match, "bytes") for match in rings),
    )


def _listed(text: str) -> tuple[GpuEntry, ...]:
    entries = [GpuEntry(_whole(match, "index"), match["name"], match["uuid"]) for match in _LISTED.finditer(text)]
    return tuple(dict.fromkeys(entries))


def _device(match: re.Match[str]) -> Device:
    mode: Mode | None = None
    if match["kind"] is not None:
        mode = "double" if match["kind"] == "DOUBLES" else "tensor" if match["tensor"] else "float"
    gpu, total, free, used = (_whole(match, name) for name in ("gpu", "total", "free", "used"))
    return Device(gpu, total, free, used, mode)


def _by_device(rings: list[re.Match[str]], devices: list[re.Match[str]]) -> dict[int, int]:
    """The processes print at the same time, so a ring's line need not follow its device's: the memory used says which is whose."""
    printed = {_whole(match, "results") for match in rings}
    sizes = {_whole(match, "bytes") // _MEGABYTE for match in rings}
    found: dict[int, int] = {}
    for match in devices:
        for size in sizes - {0} if len(sizes) == 1 else ():
            results = _whole(match, "used") // size - 2
            if results in printed:
                found[int(match["gpu"])] = results
    return found


def _whole(match: re.Match[str], name: str) -> int:
    return int(reading.number(TOOL, match.group(), match[name]))
