"""The comparing kernel's own text, run on the processor: every bit, both ends, odd sizes,
unaligned places. tests/gpu has it on a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import cuda_on_cpu
import numpy as np
from cases import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from thoroughness import examples

from acceptance.loads.burn.compare import KINDS, RESULTS, Results, steps

KERNELS = "compare"
Bytes = NDArray[np.uint8]
WIDTHS = (1, 2, 4, 8)
PATTERNS = {  # of the result's format: a NaN, an infinite number, the negative one
    "f16": (2, 0x7E01, 0x7C00, 0xFC00),
    "bf16": (2, 0x7FC1, 0x7F80, 0xFF80),
    "f8": (2, 0x7FC1, 0x7F80, 0xFF80),
    "f32": (4, 0x7FC00001, 0x7F800000, 0xFF800000),
    "tf32": (4, 0x7FC00001, 0x7F800000, 0xFF800000),
    "f64": (8, 0x7FF8 << 48 | 1, 0x7FF0 << 48, 0xFFF0 << 48),
}


def memory(count: int, off: int = 0) -> Bytes:
    """Bytes whose first is so far from a place that is a multiple of 16."""
    whole = np.zeros(count + 32, dtype=np.uint8)
    begin = -whole.ctypes.data % 16 + off
    return whole[begin : begin + count]


def compared(
    built: cuda_on_cpu.Built,
    expected: Bytes,
    results: Sequence[Bytes],
    width: int,
    kind: int = 0,
    threads: int = 32,
) -> list[tuple[int, int, int]]:
    tally = np.zeros(3 * RESULTS + 1, dtype=np.uint64)
    places = [one.ctypes.data for one in results] + [expected.ctypes.data] * (
        RESULTS - len(results)
    )
    arguments: list[Any] = [
        ctypes.c_void_p(expected.ctypes.data),
        Results((ctypes.c_void_p * RESULTS)(*places)),
        ctypes.c_ulonglong(expected.nbytes),
        ctypes.c_uint(width),
        ctypes.c_uint(kind),
        ctypes.c_void_p(tally.ctypes.data),
    ]
    built.launch("compare", 2, threads, *arguments)
    found = [int(count) for count in tally]
    aligned = all(one.ctypes.data % 16 == 0 for one in (expected, *results))
    assert found[-1] == steps(expected.nbytes, width, 2, threads, aligned=aligned) > 0, (
        "it says that it compared"
    )
    return [(found[3 * r], found[3 * r + 1], found[3 * r + 2]) for r in range(len(results))]


def copies(expected: Bytes, count: int, off: int = 0) -> list[Bytes]:
    found = []
    for _ in range(count):
        one = memory(expected.nbytes, off)
        one[:] = expected
        found.append(one)
    return found


def noise(count: int, off: int = 0) -> Bytes:
    found = memory(count, off)
    found[:] = np.random.default_rng(count).integers(0, 256, count, dtype=np.uint8)
    return found


@each("width", WIDTHS)
def test_every_bit_of_the_first_the_last_and_others(built: cuda_on_cpu.Built, width: int) -> None:
    expected = noise(1009 * width)
    for element in (0, 1, 16 // width, 500, 1007, 1008):
        for first in range(0, 8 * width, RESULTS):
            results = copies(expected, RESULTS)
            for place, result in enumerate(results):
                bit = first + place
                result[element * width + bit // 8] ^= 1 << bit % 8
            assert compared(built, expected, results, width) == [(1, 0, 0)] * RESULTS


@each("width", WIDTHS)
@each("count", [1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1023, 4097])
def test_odd_sizes(built: cuda_on_cpu.Built, width: int, count: int) -> None:
    expected = noise(count * width)
    same, last, every = copies(expected, 3)
    last[-1] ^= 128
    every ^= 1
    assert [wrong for wrong, _, _ in compared(built, expected, [same, last, every], width)] == [
        0,
        1,
        count,
    ]


@each("width", WIDTHS)
@each("off", [1, 2, 3, 7])
def test_unaligned_places_and_tails(built: cuda_on_cpu.Built, width: int, off: int) -> None:
    expected = noise(333 * width, off * width % 16)
    first, last = copies(expected, 2, (off + 1) * width % 16)
    first[0] ^= 1
    last[-1] ^= 1
    assert [wrong for wrong, _, _ in compared(built, expected, [first, last], width)] == [1, 1]


@each("short", list(PATTERNS))
def test_nan_and_infinite_numbers_are_counted_apart(built: cuda_on_cpu.Built, short: str) -> None:
    width, nan, infinite, negative = PATTERNS[short]
    expected = memory(100 * width)
    (result,) = copies(expected, 1)
    words = result.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[width])
    words[3], words[50], words[51], words[99] = nan, infinite, negative, 1
    assert compared(built, expected, [result], width, KINDS[short]) == [(4, 1, 2)]
    assert compared(built, result, copies(result, 1), width, KINDS[short]) == [(0, 0, 0)], (
        "what is due is not wrong"
    )
    assert compared(built, expected, [result], width, KINDS["i8"]) == [(4, 0, 0)], (
        "whole numbers are neither"
    )


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_what_differs_is_counted_whatever_and_wherever_it_is(
    built: cuda_on_cpu.Built, data: st.DataObject
) -> None:
    width, count = data.draw(st.sampled_from(WIDTHS)), data.draw(st.integers(1, 700))
    expected = noise(count * width)
    results = copies(expected, data.draw(st.integers(1, RESULTS)))
    due = []
    for result in results:
        places = data.draw(st.sets(st.integers(0, count - 1), max_size=6))
        for place in places:
            result[place * width + data.draw(st.integers(0, width - 1))] ^= data.draw(
                st.integers(1, 255)
            )
        due.append((len(places), 0, 0))
    assert (
        compared(built, expected, results, width, threads=data.draw(st.sampled_from([1, 32, 256])))
        == due
    )
