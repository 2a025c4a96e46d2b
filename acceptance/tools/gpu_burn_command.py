"""How gpu-burn is run: its command line, the memory that makes it compare often enough, and when it must have ended."""

from __future__ import annotations

import math
from typing import Literal

Mode = Literal["float", "tensor", "double"]

# It asks its processes to end and then sleeps this long, whether they need it or not.
STOP_S = 30
# Context, random matrices, and a product or two that are still under way.
_START_S = 60
_FLAGS: dict[Mode, tuple[str, ...]] = {"float": (), "tensor": ("-tc",), "double": ("-d",)}
_RESULT_MB: dict[Mode, int] = {"float": 256, "tensor": 256, "double": 512}
_PRODUCT_FLOP = 2 * 8192**3
# The first result is what the others are held against: of one alone nothing is compared.
_SMALLEST_RING = 2
_FREE_SHARE = 0.9
# It looks for these anywhere in any word, a path included: `-c /opt/my-data/compare.ptx` turns doubles on.
_FOUND_ANYWHERE = ("-h", "-l", "-d", "-tc")


def argv(binary: str, *, mode: Mode, seconds: int, memory_mb: int, compare_file: str | None = None) -> tuple[str, ...]:
    """The command line that burns every GPU it sees for `seconds`, with `memory_mb` (2^20 bytes) on each.

    Raises ValueError for what would not run, or would run as something else.
    """
    if seconds < 1:
        raise ValueError(f"gpu-burn needs at least 1 second, not {seconds}")
    if memory_mb < _smallest_mb(mode):
        raise ValueError(f"gpu-burn needs {_smallest_mb(mode)} MB to compare anything in this mode, not {memory_mb}")
    words = [binary, *_FLAGS[mode], "-m", str(memory_mb)]
    if compare_file is not None:
        spoilt = [flag for flag in _FOUND_ANYWHERE if flag in compare_file]
        if spoilt or not compare_file or compare_file.startswith("-"):
            raise ValueError(
                f"gpu-burn would take '{compare_file}' for options"
                + (f": it finds {spoilt[0]} in it" if spoilt else "")
                + "; name another path of the compare kernel"
            )
        words += ["-c", compare_file]
    return (*words, str(seconds))


def _smallest_mb(mode: Mode) -> int:
    return (_SMALLEST_RING + 2) * _RESULT_MB[mode]


def memory_mb(mode: Mode, *, rate_tflops: float, compare_s: float, free_mb: int) -> int:
    """The memory (2^20 bytes) with which a GPU of `rate_tflops` compares about every `compare_s` seconds: A, B and a ring of results.

    It fills the ring, C[0] included, before each compare, so by default (0.9 of the free memory) a large card compares rarely and a
    short run not at all. At least two results; at most 0.9 of `free_mb`. Raises ValueError when that is not enough, or for a rate or
    a time that is not a positive number.
    """
    for name, value in (("rate_tflops", rate_tflops), ("compare_s", compare_s)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, not {value}")
    most = math.floor(free_mb * _FREE_SHARE)
    if most < _smallest_mb(mode):
        raise ValueError(
            f"{free_mb} MB of GPU memory are free, and gpu-burn needs {_smallest_mb(mode)} MB in this mode, which may be at most 0.9 of"
            " it: end what else holds GPU memory"
        )
    ring = max(_SMALLEST_RING, math.floor(min(rate_tflops * 1e12 * compare_s / _PRODUCT_FLOP, free_mb)))
    return min((ring + 2) * _RESULT_MB[mode], most)


def deadline_s(seconds: int) -> float:
    """When a run of `seconds` must have ended, in seconds from its start."""
    return float(seconds + STOP_S + _START_S)
