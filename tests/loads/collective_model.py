"""The collective operations on arrays of numpy: what each rank would receive, by their definition.

A sum is made in its own format, one addition after the other in a given order, and rounded after
each, bfloat16 by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from acceptance.loads.collective.pattern import Operation
from acceptance.loads.miscompare import ElementType

# numpy has no bfloat16: its numbers are those of float32 whose last 16 bits are 0.
STORED = {"f32": np.float32, "bf16": np.float32, "f16": np.float16, "i32": np.int32}


def as_bfloat16(values: Any) -> Any:
    """float32 rounded to bfloat16: to the nearest, and to even where two are as near."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) & np.uint32(0xFFFF0000)).view(np.float32)


def stored(dtype: ElementType, values: Any) -> Any:
    """Numbers in a format."""
    as_stored = np.asarray(values).astype(STORED[dtype])
    return as_bfloat16(as_stored) if dtype == "bf16" else as_stored


def add(dtype: ElementType, one: Any, other: Any) -> Any:
    return stored(dtype, one + other)


def add_all(dtype: ElementType, parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = add(dtype, total, part)
    return total


def received(
    operation: Operation, dtype: ElementType, sources: Sequence[Any], share: int, rank: int
) -> Any:
    """The destination of one rank."""
    own = slice(rank * share, (rank + 1) * share)
    match operation.name:
        case "all_reduce":
            return add_all(dtype, sources)
        case "reduce_scatter":
            return add_all(dtype, [source[own] for source in sources])
        case "all_gather":
            return np.concatenate(sources)
        case "all_to_all":
            return np.concatenate([source[own] for source in sources])
        case _:
            return sources[operation.source].copy()
