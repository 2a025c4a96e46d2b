"""Bitwise comparison of results with the expected one, by our own kernel. Needs torch.

It counts the wrong elements of each result, and how many of these are NaN and infinite. The kernel
(`kernels/compare.cu`) reads each result once, and the expected one once for eight results: nine
eighths of the least that any comparison must read, where a plain comparison of two buffers reads
twice that least. The tests have a comparison by plain torch, the reference for the kernel.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from acceptance.loads.burn.shape import Counts
from acceptance.loads.card import Kernels, wait
from acceptance.loads.gemm.product import Tensor, words
from acceptance.loads.mismatch import SEEN, ElementBits
from acceptance.loads.program import LoadError

RESULTS = 8  # compared in one launch, as the kernel has it
_THREADS = 256
_BLOCKS_EACH = 8
_PIECE = 1 << 22
# By format of the result, as the kernel numbers them.
KINDS = {
    "f64": 4,
    "f32": 3,
    "tf32": 3,
    "f16": 1,
    "bf16": 2,
    "f8": 2,
    "i8": 0,
}


@functools.cache
def steps(size: int, width: int, blocks: int, threads: int, *, aligned: bool) -> int:
    """Expected step count of a kernel launch: steps taken by the first thread of each warp of 32.

    `size` is the bytes of a result and `width` those of an element. A thread steps over vectors of
    16 bytes where the results are aligned, then over the remaining elements.
    """
    vectors = size // 16 if aligned else 0
    left, every = (size - 16 * vectors) // width, blocks * threads

    def taken(own: int, count: int) -> int:
        return (count - own + every - 1) // every if own < count else 0

    first = [
        block * threads + thread for block in range(blocks) for thread in range(0, threads, 32)
    ]
    return sum(taken(own, vectors) + taken(own, left) for own in first)


class Results(ctypes.Structure):
    """Addresses of the results, as the kernel takes them."""

    _fields_ = (("at", ctypes.c_void_p * RESULTS),)


class KernelComparator:
    """Comparison by our own kernel, asynchronously: `start` queues it, `counts` waits for it."""

    def __init__(self) -> None:
        self._kernels = Kernels("compare")

    def start(self, expected: Tensor, results: Sequence[Tensor], kind: int) -> Any:
        """Begin to compare up to eight results of one shape with the expected one.

        Returns a ticket for `counts`.
        """
        import torch

        tally = torch.zeros(3 * RESULTS + 1, dtype=torch.int64, device=expected.device)
        if not 0 < len(results) <= RESULTS or any(one.nbytes != expected.nbytes for one in results):
            raise ValueError(f"one to {RESULTS} results of the expected size are compared at once")
        places = [one.data_ptr() for one in results] + [expected.data_ptr()] * (
            RESULTS - len(results)
        )
        arguments = (
            ctypes.c_void_p(expected.data_ptr()),
            Results((ctypes.c_void_p * RESULTS)(*places)),
            ctypes.c_ulonglong(expected.nbytes),
            ctypes.c_uint(expected.element_size()),
            ctypes.c_uint(kind),
            ctypes.c_void_p(tally.data_ptr()),
        )
        blocks = _BLOCKS_EACH * self._kernels.multiprocessors
        self._kernels.launch("compare", blocks, _THREADS, arguments)
        # -1 is never a valid count
        counts = torch.full((3 * RESULTS + 1,), -1, dtype=torch.int64, pin_memory=True)
        counts.copy_(tally, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        aligned = all(place % 16 == 0 for place in [expected.data_ptr(), *places])
        due = steps(expected.nbytes, expected.element_size(), blocks, _THREADS, aligned=aligned)
        return counts, done, len(results), due, tally

    def counts(self, ticket: Any) -> list[Counts]:
        """The counts of each result."""
        counters, done, count, due, _ = ticket
        wait(done.query)
        found = counters.tolist()
        if found[3 * RESULTS] != due:
            raise LoadError(
                f"the comparing kernel took {found[3 * RESULTS]} steps of {due}: nothing was "
                "compared by it"
            )
        return [(found[3 * r], found[3 * r + 1], found[3 * r + 2]) for r in range(count)]


def wrong_elements(expected: Tensor, got: Tensor) -> tuple[list[ElementBits], int]:
    """The first 4096 elements that differ, by index, and the index of the last one.

    The last index is -1 where the result does not differ.
    """
    want, have = words(expected).view(-1), words(got).view(-1)
    mask = (1 << 8 * expected.element_size()) - 1
    first: list[ElementBits] = []
    last = -1
    for begin in range(0, want.numel(), _PIECE):
        one, other = want[begin : begin + _PIECE], have[begin : begin + _PIECE]
        places = (one != other).nonzero().flatten()
        if places.numel():
            last = begin + int(places[-1])
            kept = places[: SEEN - len(first)]
            due, found = one[kept].tolist(), other[kept].tolist()
            first += [
                ElementBits(begin + place, old & mask, new & mask)
                for place, old, new in zip(kept.tolist(), due, found, strict=True)
            ]
    return first, last
