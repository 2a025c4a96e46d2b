"""`kernels/collective.cu`, the very source that NVRTC compiles, run on the processor: it makes the
numbers of `pattern`, bit for bit, and finds every element that is another.
"""

from __future__ import annotations

import ctypes
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thoroughness import examples

from acceptance.loads.collective.pattern import (
    ELEMENT_TYPES,
    EXACT,
    FORMATS,
    OPERATIONS,
    Numbers,
    Operation,
    Rule,
    before,
    due,
    kernel_rule,
)
from acceptance.loads.miscompare import CollectiveCheck, ElementType

KERNELS = "collective"
BITS: dict[ElementType, Any] = {
    "f32": np.uint32,
    "i32": np.uint32,
    "bf16": np.uint16,
    "f16": np.uint16,
}
WRONG, STEPS = 0, 1


def bits(dtype: ElementType, values: Any) -> Any:
    """The bits of whole numbers in a format."""
    if dtype == "i32":
        return values.astype(np.uint32)
    if dtype == "f16":
        return values.astype(np.float16).view(np.uint16)
    single = values.astype(np.float32).view(np.uint32)
    return single if dtype == "f32" else (single >> np.uint32(16)).astype(np.uint16)


def arguments(buffer: Any, numbers: Numbers, rule: Rule, turn: int) -> list[Any]:
    return [
        ctypes.c_void_p(buffer.ctypes.data),
        ctypes.c_ulonglong(len(buffer)),
        ctypes.c_uint(FORMATS[numbers.dtype]),
        kernel_rule(numbers, rule, turn),
    ]


def written(built: cuda_on_cpu.Built, numbers: Numbers, rule: Rule, turn: int, count: int) -> Any:
    buffer = np.zeros(count, BITS[numbers.dtype])
    built.launch("write_numbers", 2, 32, *arguments(buffer, numbers, rule, turn))
    return buffer


def counted(
    built: cuda_on_cpu.Built, numbers: Numbers, rule: Rule, turn: int, got: Any
) -> tuple[int, int]:
    """Wrong elements, and steps."""
    tally = np.zeros(2, np.uint64)
    place = ctypes.c_void_p(tally.ctypes.data)
    built.launch("compare_numbers", 2, 32, *arguments(got, numbers, rule, turn), place)
    return int(tally[WRONG]), int(tally[STEPS])


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(OPERATIONS),
    dtype=st.sampled_from(ELEMENT_TYPES),
    ranks=st.integers(2, 11),
    turn=st.integers(0, (1 << 26) - 1),
    share=st.integers(1, 90),
    data=st.data(),
)
def test_the_kernel_has_the_numbers_of_arrays(
    built: cuda_on_cpu.Built,
    name: CollectiveCheck,
    dtype: ElementType,
    ranks: int,
    turn: int,
    share: int,
    data: Any,
) -> None:
    operation, numbers = Operation(name, ranks, 1, 0), Numbers(dtype, ranks)
    rank = data.draw(st.integers(0, ranks - 1))
    count = share * operation.shares
    places = np.arange(count, dtype=np.int64)
    for rule in (due(operation, rank, share), before(operation, rank), Rule(rank=rank)):
        if rule is None:
            continue
        expected = bits(dtype, numbers.by(rule, turn, places))
        got = written(built, numbers, rule, turn, count)
        assert (got == expected).all()
        assert counted(built, numbers, rule, turn, got) == (0, count)
        place = data.draw(st.integers(0, count - 1))
        got[place] ^= BITS[dtype](1 << data.draw(st.integers(0, 8 * got.itemsize - 1)))
        assert counted(built, numbers, rule, turn, got) == (1, count)
    spoiled = np.full(count, 0xBF80, BITS[dtype])
    assert counted(built, numbers, due(operation, rank, share), turn, spoiled)[WRONG] == count


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_every_whole_number_of_a_format_has_its_bits(
    built: cuda_on_cpu.Built, dtype: ElementType
) -> None:
    """Two ranks reach every number up to half the bound, and their sums nearly the bound."""
    numbers = Numbers(dtype, 2)
    places = np.arange(20_000, dtype=np.int64)
    sums = numbers.total(3, places)
    assert sums.max() > 0.9 * min(EXACT[dtype], 2**31 - 1) / 2
    got = written(built, numbers, Rule(total=True), 3, len(places))
    assert (got == bits(dtype, sums)).all()


def test_a_buffer_that_is_longer_than_the_grid_is_compared_whole(
    built: cuda_on_cpu.Built,
) -> None:
    numbers, rule = Numbers("f32", 8), Rule(total=True, offset=1 << 33)
    got = written(built, numbers, rule, 1, 10_007)
    assert counted(built, numbers, rule, 1, got) == (0, 10_007)
    got[[0, 63, 64, 10_006]] += np.uint32(1)
    assert counted(built, numbers, rule, 1, got) == (4, 10_007)
    assert counted(built, numbers, rule, 2, got)[WRONG] > 9_900, "an old turn is wrong"
