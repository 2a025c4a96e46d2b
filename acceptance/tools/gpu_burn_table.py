"""What frames gpu-burn's progress: the lines before it, and the table of results that ends it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptance.tools import reading
from acceptance.tools.gpu_burn_progress import TOOL

_TESTED = re.compile(r"\bTested (?P<gpus>\d{1,4}) GPUs?:")
# `nvidia-smi -L` prints `GPU 0: NVIDIA ...` above, so the word after the colon decides.
_VERDICT = re.compile(r"\bGPU (?P<gpu>\d{1,4}): *(?P<verdict>OK|FAULTY)\b")
_DEVICE = re.compile(
    r"Initialized device (?P<gpu>\d{1,4}) with \d+ MB of memory \(\d+ MB available, using (?P<used>\d+) MB of it\)"
)
_RING = re.compile(r"Results are (?P<bytes>\d+) bytes each, thus performing (?P<results>\d+) iterations")
_OURS = re.compile(
    r"run length not specified in the command line|Using compare file:|Burning for \d+ sec|Killing processes|Uninitted cublas",
    re.IGNORECASE,
)
_ELIDED = re.compile(r"^[ \t>*#=\[(<-]*(?:\.{3}|…)|\bsnip\b|\belided\b|similar lines", re.IGNORECASE | re.MULTILINE)
_WINDOWS = re.compile(r"^Terminating threads$", re.MULTILINE)
_MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class Frame:
    """The lines around the progress.

    `tested`: the number of each table's head; `verdicts`: (GPU, OK or FAULTY) as they come; `rings`: results of each ring as printed;
    `by_device`: the same by device, as far as it follows from the memory used; `elided`: the poster left lines out and said so;
    `windows`: the build that may end before it shows 100 %; `ours`: some line is gpu-burn's.
    """

    tested: tuple[int, ...]
    verdicts: tuple[tuple[int, str], ...]
    rings: tuple[int, ...]
    by_device: dict[int, int]
    elided: bool
    windows: bool
    ours: bool

    def faulty(self) -> list[int]:
        """The GPUs that are called FAULTY."""
        return sorted({gpu for gpu, verdict in self.verdicts if verdict == "FAULTY"})


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
    )


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
