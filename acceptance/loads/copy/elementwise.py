"""The elementwise product c = a * b of float32 vectors, verified: a table that builders publish.

The vectors have 65536 to 67108864 elements. GB/s counts two vectors read and one written, 12 bytes
an element. The products are started one after the other from Python, so small vectors show the
launch rate. Vectors that fit together into the GPU's L2 cache need not come from its memory. Where
that cache is much faster than the memory, the table has a hump there (an RTX 4090 with 72 MiB: 3777
GB/s, against 1008 of its memory). Where it is not, the hump is small or absent (an H200 with 60
MiB: 3857 GB/s in one run and 4646 in another, against 4329 and 4128 from its memory). Only vectors
several times larger than the cache show the memory's rate. a and b are whole numbers from 1 to
4096, so each product is exact and is known in integers. The last product of each batch is compared
whole, outside the timed part, with integers that the GPU multiplies.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

from acceptance.loads.contract import OWN
from acceptance.loads.copy.contract import ELEMENTS
from acceptance.loads.copy.device_pattern import Tensor, words
from acceptance.loads.miscompare import WrongVector

BYTES_AN_ELEMENT = 12
BATCHES = 5
_BATCH_S = 0.05
SPOILED = 0.5  # never a product of whole numbers
_LARGEST = 4096  # its square is 2**24, the last before which float32 holds every whole number
_START = 1 << 56  # sequence number of the first word, beyond every buffer of the copies
_INJECTED_BATCH = 1


def row(elements: int, rate: float) -> list[int | float]:
    """A row of the table: number of elements, MiB of all three vectors, and GB/s."""
    return [elements, BYTES_AN_ELEMENT * elements / 2**20, rate]


def hump(l2_bytes: int) -> str:
    """A note on why the middle of the table may be faster than the memory."""
    fits = [elements for elements in ELEMENTS if BYTES_AN_ELEMENT * elements <= l2_bytes]
    within = (
        f"the vectors of up to {max(fits)} elements fit into it"
        if fits
        else "no vectors of the table fit into it"
    )
    return (
        f"elementwise product: the L2 cache holds {l2_bytes / 2**20:.1f} MiB, {within}; only "
        "larger ones show the memory"
    )


def _factor(elements: int, first: int) -> Tensor:
    """Whole numbers from 1 to 4096, as int64."""
    return words(_START + first, elements, "cuda").bitwise_and_(_LARGEST - 1).add_(1)


def measure(
    elements: int, report: Callable[[WrongVector], None], inject: str | None
) -> tuple[float, int]:
    """Median GB/s of the batches, and the number of batches that ended with a wrong product."""
    import torch

    whole = [_factor(elements, first) for first in (0, elements)]
    a, b = (factor.to(torch.float32) for factor in whole)
    expected = whole[0].mul_(whole[1]).to(torch.float32)
    c = torch.empty_like(a)
    times = 2 if inject == "slow" else 1

    def batch(count: int) -> float:
        """Seconds of `count` products, by the GPU's clock."""
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        c.fill_(SPOILED)
        began.record()
        for _ in range(count * times):
            torch.mul(a, b, out=c)
        ended.record()
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1e3

    batch(3)
    count = max(3, math.ceil(_BATCH_S * 10 / batch(10)))
    rates, wrong = [], 0
    for turn in range(BATCHES):
        rates.append(BYTES_AN_ELEMENT * elements * count / batch(count) / 1e9)
        if inject == "wrong" and turn == _INJECTED_BATCH:
            c[elements // 2] = SPOILED
        # also true where c is NaN; neither is ever 0, so equal values have equal bits
        differs = c != expected
        here = int(differs.count_nonzero())
        if here:
            wrong += 1
            at = int(differs.nonzero()[0])
            report(
                WrongVector(
                    component=OWN,
                    check="elementwise",
                    elements=elements,
                    batch=turn,
                    wrong=here,
                    index=at,
                    expected=float(expected[at]),
                    got=str(float(c[at])),
                )
            )
    return statistics.median(rates), wrong
