"""Number formats of matrix products: which a GPU supports, and their keys in its sheet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

DtypeName = Literal["f64", "f32", "tf32", "f16", "bf16", "f8", "i8"]
DTYPES: tuple[DtypeName, ...] = get_args(DtypeName)
TrainedDtype = Literal["bf16", "f16"]
# Formats of the processor's matrix load, with numpy's name for each.
CpuDtype = Literal["float64", "float32"]
CPU_DTYPES: Mapping[DtypeName, CpuDtype] = {"f64": "float64", "f32": "float32"}
# The first compute capability whose tensor cores (float64 and float32: whose ordinary cores)
# support the format. Source: NVIDIA's PTX ISA, target notes of `mma`: f16 from sm_70, integers from
# sm_75, bf16 and tf32 from sm_80, e4m3 from sm_89. On older cards libraries compute in another
# format and convert (bfloat16 on a V100 runs at a tenth of float16's rate), which says nothing
# about the card.
FIRST_CAPABILITY: Mapping[DtypeName, tuple[int, int]] = {
    "f64": (0, 0),
    "f32": (0, 0),
    "tf32": (8, 0),
    "f16": (7, 0),
    "bf16": (8, 0),
    "f8": (8, 9),
    "i8": (7, 5),
}
# Keys of `[peak]` in a model sheet. A card whose tensor cores compute float64 multiplies matrices
# with them.
PEAKS: Mapping[str, tuple[str, ...]] = {
    "f64": ("fp64_tensor", "fp64"),
    "f32": ("fp32",),
    "tf32": ("tf32",),
    "f16": ("fp16",),
    "bf16": ("bf16",),
    "f8": ("fp8",),
    "i8": ("int8",),
}


def native_dtypes(compute_capability: str) -> tuple[DtypeName, ...]:
    """The formats that a GPU of this compute capability ("8.9") supports itself.

    Raises ValueError where the text is not a compute capability.
    """
    major, dot, minor = compute_capability.partition(".")
    if not (major.isdecimal() and dot and minor.isdecimal()):
        raise ValueError(f"{compute_capability!r} is no compute capability such as '8.9'")
    return tuple(
        dtype for dtype, first in FIRST_CAPABILITY.items() if first <= (int(major), int(minor))
    )


def trained_dtype(compute_capability: str) -> TrainedDtype:
    """The format in which training is judged on such a GPU: bfloat16, or else float16.

    Raises ValueError where the text is not a compute capability.
    """
    return "bf16" if "bf16" in native_dtypes(compute_capability) else "f16"


# Readings of the matrix load by format: short, sustained, and the count of wrong results.
GEMM_READINGS = ("gemm_{}_short", "gemm_{}", "gemm_{}_miscompares")


def gemm_names(dtype: str) -> tuple[str, str]:
    """The measurements of a format that sheets limit: short and sustained.

    The short one is the first tenth of a second on a cool card.
    """
    short, sustained, _ = GEMM_READINGS
    return short.format(dtype), sustained.format(dtype)


def burn_name(dtype: str) -> str:
    """The measurement of a format in the burn: sustained, every result verified."""
    return f"burn_{dtype}"
