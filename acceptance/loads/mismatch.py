"""Describes the wrong elements of one result: positions, stride, and differing bits. Pure.

A result may be wrong in millions of places. All are counted; the first 4096 by address are
examined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypedDict

from acceptance.loads.miscompare import WrongElement, WrongPlace

SEEN = 4096
LISTED = 8


@dataclass(frozen=True, slots=True)
class ElementBits:
    """One wrong element: its index in the result, and its expected and actual bits.

    The bits are unsigned whole numbers.
    """

    element: int
    expected: int
    got: int


class ElementPlaces(TypedDict, total=False):
    """The places and bits of the wrong elements of a `WrongProduct`."""

    stride: int | None
    span: tuple[int, int]
    xor_or: str
    xor_and: str
    bits: dict[int, int]
    first: tuple[WrongElement, ...]


class OddCounts(TypedDict):
    """The numbers of NaN and of infinite elements."""

    nan: int
    infinite: int


class ProductDifference(OddCounts):
    """How the product of a `WrongRepeat` differs."""

    elements: int
    first: tuple[WrongPlace, ...]


class RemadeDigest(OddCounts):
    """The digest of a first product, and that of the same product made again, with its oddities."""

    expected: str
    got: str


def describe_elements(
    first: Sequence[ElementBits], last: int, *, columns: int, width: int, base: int
) -> ElementPlaces:
    """Positions and bits of the wrong elements, for a wrong product.

    `first` are the first wrong elements by index, from one to SEEN of them; `last` is the index of
    the last wrong element. `columns` is the result's width in elements, `width` the bytes of an
    element, `base` the byte offset of the result in the memory that holds all results.
    """
    xors = [one.expected ^ one.got for one in first]
    either, every = 0, (1 << 8 * width) - 1
    for xor in xors:
        either |= xor
        every &= xor
    bits = Counter(bit for xor in xors for bit in range(8 * width) if xor >> bit & 1)
    return {
        "stride": _stride([one.element for one in first]),
        "span": (first[0].element, last),
        "xor_or": f"{either:0{2 * width}x}",
        "xor_and": f"{every:0{2 * width}x}",
        "bits": {bit: bits[bit] for bit in sorted(bits)},
        "first": tuple(
            WrongElement(
                index=divmod(one.element, columns),
                address=base + width * one.element,
                expected=f"{one.expected:0{2 * width}x}",
                got=f"{one.got:0{2 * width}x}",
                xor=f"{one.expected ^ one.got:0{2 * width}x}",
            )
            for one in first[:LISTED]
        ),
    }


def _stride(elements: Sequence[int]) -> int | None:
    """The most frequent distance between neighbouring wrong elements, in elements.

    None for a single element, or where fewer than half of the distances equal it.
    """
    steps = Counter(after - before for before, after in pairwise(elements))
    if not steps:
        return None
    step, times = steps.most_common(1)[0]
    return step if 2 * times >= len(elements) - 1 else None
