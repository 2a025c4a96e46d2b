"""A lint of the limits in model sheets: each a plausible share of the sheet's own peak, by a range
for each class of cards.

The ranges were set from the floors of the facts page and what was measured (`published`). Each is
narrow enough that twice or half of any floor in it is outside: a figure with sparsity, of another
model or in another unit does not get by.
"""

from __future__ import annotations

from collections.abc import Iterator

from acceptance.core.dtype import PEAKS, gemm_names, native_dtypes
from acceptance.expect.sheet import LOCAL_COPY, Sheet

Range = tuple[float, float]
# f64, f32, tensor cores (TF32, float16, bfloat16, FP8), INT8, local copy: shares of the peak, hot
# and cool together.
KINDS = {"f64": 0, "f32": 1, "i8": 3, "copy": 4}
TENSOR = 2
NONE: Range = (0.0, 0.0)
# By the beginning of a sheet's name; the longest that fits holds.
CLASSES: dict[str, tuple[Range, Range, Range, Range, Range]] = {
    "V100 SXM2": ((0.6, 0.85), (0.65, 0.88), (0.5, 0.75), NONE, (0.65, 0.85)),
    "V100 PCIe": ((0.55, 0.85), (0.6, 0.88), (0.45, 0.75), NONE, (0.65, 0.85)),
    "T4": (NONE, (0.3, 0.55), (0.3, 0.6), (0.15, 0.35), (0.6, 0.8)),
    "L4": (NONE, (0.3, 0.5), (0.3, 0.6), (0.15, 0.35), (0.6, 0.85)),
    "L40": (NONE, (0.3, 0.45), (0.4, 0.7), (0.2, 0.4), (0.65, 0.85)),
    "L40S": (NONE, (0.35, 0.5), (0.4, 0.75), (0.2, 0.4), (0.65, 0.85)),
    "RTX 6000 Ada": (NONE, (0.3, 0.5), (0.35, 0.7), (0.2, 0.4), (0.65, 0.85)),
    "RTX A6000": (NONE, (0.3, 0.55), (0.45, 0.78), (0.2, 0.4), (0.65, 0.85)),
    "A40": (NONE, (0.3, 0.5), (0.45, 0.75), (0.2, 0.4), (0.65, 0.81)),
    "A10": (NONE, (0.15, 0.25), (0.33, 0.6), (0.2, 0.4), (0.65, 0.85)),
    "A30": ((0.45, 0.8), (0.6, 0.9), (0.45, 0.75), (0.3, 0.5), (0.65, 0.83)),
    "A100 SXM4": ((0.6, 0.9), (0.7, 0.94), (0.6, 0.82), (0.4, 0.7), (0.6, 0.78)),
    "A100 PCIe": ((0.45, 0.8), (0.7, 0.9), (0.45, 0.75), (0.35, 0.6), (0.6, 0.77)),
    "H100 SXM5": ((0.6, 0.8), (0.6, 0.77), (0.5, 0.8), (0.33, 0.5), (0.65, 0.86)),
    "H200 SXM": ((0.6, 0.8), (0.6, 0.76), (0.5, 0.8), (0.33, 0.44), (0.65, 0.83)),
    "GH200": ((0.6, 0.8), (0.6, 0.74), (0.5, 0.8), (0.33, 0.5), (0.55, 0.7)),
    "H100 PCIe": ((0.35, 0.65), (0.4, 0.7), (0.36, 0.65), (0.22, 0.45), (0.6, 0.8)),
    "H100 NVL": ((0.35, 0.65), (0.4, 0.56), (0.36, 0.65), (0.22, 0.45), (0.55, 0.69)),
    "H200 NVL": ((0.35, 0.65), (0.4, 0.7), (0.36, 0.65), (0.22, 0.45), (0.5, 0.61)),
    "H20 96GB": ((0.45, 0.8), (0.45, 0.72), (0.65, 0.95), (0.3, 0.6), (0.35, 0.49)),
    "B200": ((0.4, 0.7), (0.5, 0.8), (0.36, 0.72), (0.12, 0.3), (0.55, 0.7)),
    "B300": ((0.4, 0.7), (0.5, 0.65), (0.36, 0.72), NONE, (0.55, 0.76)),
    "GB200": ((0.4, 0.7), (0.5, 0.8), (0.36, 0.72), (0.12, 0.3), (0.3, 0.43)),
    "RTX PRO 6000": (NONE, (0.4, 0.61), (0.36, 0.62), (0.2, 0.4), (0.65, 0.9)),
    "RTX PRO 6000 Blackwell Max-Q": (NONE, (0.3, 0.47), (0.3, 0.5), (0.15, 0.3), (0.65, 0.85)),
    "GeForce RTX": (NONE, (0.45, 0.62), (0.6, 0.94), (0.2, 0.4), (0.65, 0.85)),
    "GeForce RTX 2080": (NONE, (0.7, 0.96), (0.7, 1.0), (0.2, 0.4), (0.65, 0.85)),
}


def range_of(one: Sheet, kind: str) -> Range:
    """The shares that floors of this card may be."""
    named = max((name for name in CLASSES if one.name.startswith(name)), key=len)
    return CLASSES[named][KINDS.get(kind, TENSOR)]


def subjects(one: Sheet) -> dict[str, tuple[str, str, float | None]]:
    """What may be limited: kind, unit and the sheet's own peak, by measurement."""
    found: dict[str, tuple[str, str, float | None]] = {
        LOCAL_COPY: ("copy", "GB/s", one.memory.bandwidth_gbs),
    }
    for dtype in native_dtypes(one.compute_capability):
        peak = next(
            (value for key in PEAKS[dtype] if (value := getattr(one.peak, key)) is not None), None
        )
        found |= {name: (dtype, "TFLOP/s", peak) for name in gemm_names(dtype)}
    return found


def lint(one: Sheet) -> Iterator[str]:
    """Every limit that cannot be right, and why."""
    known = subjects(one)
    for row in one.limit:
        kind, _, peak = known[row.measurement]
        assert peak is not None  # as reading the sheet asks
        low, high = range_of(one, kind)
        if not low <= row.low / peak <= high:
            yield (
                f"{row.measurement}: {row.low:g} is {row.low / peak:.3g} of {peak:g}, not "
                f"{low:g} to {high:g}"
            )
