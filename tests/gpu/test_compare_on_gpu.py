"""The comparing kernel on a real GPU, against torch's own comparison: every bit, both ends, odd
sizes, unaligned places.
"""

from __future__ import annotations

from typing import Any

import pytest
from plain_comparator import TorchComparator

from acceptance.loads.burn.compare import KINDS, RESULTS, KernelComparator
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.product import formats, words

pytestmark = pytest.mark.gpu
every = pytest.mark.parametrize("short", list(DTYPES))


@pytest.fixture(scope="module")
def kernel() -> KernelComparator:
    return KernelComparator()


def both(
    kernel: KernelComparator, expected: Any, results: list[Any], short: str
) -> list[tuple[int, int, int]]:
    """What the kernel counts, which is what torch counts."""
    found = kernel.counts(kernel.start(expected, results, KINDS[short]))
    reference = TorchComparator()
    assert found == reference.counts(reference.start(expected, results, KINDS[short]))
    return found


def numbers(short: str, count: int) -> Any:
    import torch

    _, given = formats(DTYPES[short])
    drawn = torch.randn(count, device="cuda") * (1000 if short == "i8" else 1)
    return drawn.to(given)


@every
def test_every_bit_of_the_first_the_last_and_others(kernel: KernelComparator, short: str) -> None:
    count = 100_003
    expected = numbers(short, count)
    width = 8 * expected.element_size()
    for at in (0, 1, 7, 8, count // 2, count - 2, count - 1):
        for begin in range(0, width, RESULTS):
            results = [expected.clone() for _ in range(min(RESULTS, width - begin))]
            for place, result in enumerate(results):
                bit = begin + place
                words(result)[at] ^= (1 << bit) if bit < width - 1 else -(1 << bit)
            assert [wrong for wrong, _, _ in both(kernel, expected, results, short)] == [1] * len(
                results
            )


@every
@pytest.mark.parametrize(
    "count", [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 255, 257, 4095, 4097, 1_000_003]
)
def test_odd_sizes(kernel: KernelComparator, short: str, count: int) -> None:
    expected = numbers(short, count)
    results = [expected.clone() for _ in range(3)]
    words(results[1])[count - 1] ^= 1
    words(results[2])[:] ^= 1
    assert [wrong for wrong, _, _ in both(kernel, expected, results, short)] == [0, 1, count]


@every
@pytest.mark.parametrize("off", [1, 2, 3, 5])
def test_unaligned_places_and_tails(kernel: KernelComparator, short: str, off: int) -> None:
    count = 10_007
    expected = numbers(short, count + off)[off:]
    results = [numbers(short, count + shift)[shift:].copy_(expected) for shift in (0, 1, off)]
    assert all(wrong == 0 for wrong, _, _ in both(kernel, expected, results, short))
    words(results[0])[0] ^= 1
    words(results[1])[count - 1] ^= 2
    words(results[2])[count // 2] ^= 4
    assert [wrong for wrong, _, _ in both(kernel, expected, results, short)] == [1, 1, 1]


@every
def test_numbers_that_are_none_are_counted_apart(kernel: KernelComparator, short: str) -> None:
    expected = numbers(short, 4099)
    result = expected.clone()
    if short == "i8":
        result[5] = 0x7FC00000
        assert both(kernel, expected, [result], short) == [(1, 0, 0)]
        return
    result[0] = result[4098] = float("nan")
    result[7], result[8], result[9] = float("inf"), float("-inf"), 12345.0
    assert both(kernel, expected, [result], short) == [(5, 2, 2)]
    assert both(kernel, result, [result.clone()], short) == [(0, 0, 0)]


@every
def test_a_whole_result_that_is_wrong_in_every_place(kernel: KernelComparator, short: str) -> None:
    expected = numbers(short, 8192 * 8192)
    result = expected.clone()
    words(result)[:] ^= 1
    assert both(kernel, expected, [expected.clone(), result], short)[1][0] == 8192 * 8192
