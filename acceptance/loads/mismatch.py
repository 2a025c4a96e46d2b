"""Describe the wrong elements of one result: positions, stride, and differing bits. Pure.

A result may be wrong in millions of places; the first 4096 by address are looked at, and all are
counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

SEEN = 4096
LISTED = 8


@dataclass(frozen=True, slots=True)
class WrongElement:
    """One wrong element: its number in the result, and the bits that were due and that were
    found, as whole numbers without sign.
    """

    element: int
    expected: int
    got: int


def describe_elements(
    first: Sequence[WrongElement], last: int, *, columns: int, width: int, base: int
) -> dict[str, Any]:
    """The places and the bits of wrong elements, for a miscompare's line.

    `first` are the first of them by number, SEEN at most and one at least, `last` the number of the
    last of all. `columns` are those of the result, `width` the bytes of an element, `base` the
    place of the result in the memory that holds all results, in bytes.
    """
    xors = [one.expected ^ one.got for one in first]
    either, every = 0, (1 << 8 * width) - 1
    for xor in xors:
        either |= xor
        every &= xor
    bits = Counter(bit for xor in xors for bit in range(8 * width) if xor >> bit & 1)
    return {
        "stride": _stride([one.element for one in first]),
        "span": [first[0].element, last],
        "xor_or": f"{either:0{2 * width}x}",
        "xor_and": f"{every:0{2 * width}x}",
        "bits": {str(bit): bits[bit] for bit in sorted(bits)},
        "first": [
            {
                "index": list(divmod(one.element, columns)),
                "address": base + width * one.element,
                "expected": f"{one.expected:0{2 * width}x}",
                "got": f"{one.got:0{2 * width}x}",
                "xor": f"{one.expected ^ one.got:0{2 * width}x}",
            }
            for one in first[:LISTED]
        ],
    }


def _stride(elements: Sequence[int]) -> int | None:
    """The commonest distance of neighbours, in elements, where at least half of them have it;
    None else, and for one element alone.
    """
    steps = Counter(after - before for before, after in pairwise(elements))
    if not steps:
        return None
    step, times = steps.most_common(1)[0]
    return step if 2 * times >= len(elements) - 1 else None
