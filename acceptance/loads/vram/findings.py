"""Descriptions of wrong memory: one pass as a miscompare line, and the map of the whole run.

Standard library only.
"""

from __future__ import annotations

from collections import Counter
from typing import TypedDict

from acceptance.loads.miscompare import WrongElement
from acceptance.loads.vram.passes import (
    ALL,
    TILE,
    WORD,
    SweepRecord,
    Words,
    WrongWord,
    region_tiles,
)

_TOLD = 8  # wrong words listed in a miscompare
_LOWEST = 3  # the lowest address bit that differs between two words
_MIB = 1 << 20


class WrongWords(TypedDict):
    """The wrong words of a `WrongMemory`."""

    words: int
    bits: dict[int, int]
    xor_or: str
    xor_and: str
    first: tuple[WrongElement, ...]
    bits_of: int | None
    address_bits: tuple[int, ...]


def wrong_words(record: SweepRecord, expected: Words | None, words: int) -> WrongWords:
    """The wrong words of a pass; the caller adds the pass itself.

    `expected` are the words expected in a memory of `words` words. `bits` counts how often each bit
    differs, among the first `bits_of` words where those are fewer than all. `address_bits` is
    not empty where the wrong words belong to other places: the bits in which the (byte) addresses
    of the two places differ.
    """
    return {
        "words": record.wrong,
        "bits": dict(record.bits),
        "xor_or": f"{record.any:016x}",
        "xor_and": f"{record.every:016x}",
        "first": tuple(
            WrongElement(
                address=one.place * WORD,
                expected=f"{one.expected:016x}",
                got=f"{one.got:016x}",
                xor=f"{one.xor:016x}",
            )
            for one in record.first[:_TOLD]
        ),
        "bits_of": record.told if record.told < record.wrong else None,
        "address_bits": () if expected is None else address_bits(record, expected, words),
    }


def address_bits(record: SweepRecord, expected: Words, words: int) -> tuple[int, ...]:
    """The address bits that differ between the places of wrong words and the words' own places.

    Empty where the words belong to no place. Among random words no flipped bit can look like this.
    Among words that are their own number one flipped bit does. So there a single wrong word says
    nothing, and a wrong data line can still look like an address line: compare with the random
    words.
    """
    if expected.family == "number":
        places = [_numbered(one, words) for one in record.first] if record.wrong > 1 else []
    elif expected.family == "random":
        places = [_random(one, expected, words) for one in record.first]
    else:
        places = []
    common = Counter(place for place in places if place)
    most = max(common.values(), default=0)
    bits = [
        bit
        for bit in range(words.bit_length())
        if any(n == most and place >> bit & 1 for place, n in common.items())
    ]
    return tuple(bit + _LOWEST for bit in bits)


def _numbered(word: WrongWord, words: int) -> int:
    """The bits between a place and the place whose number was found there; 0 where there is none.

    Number 0 does not count: memory that was never written is full of it.
    """
    other = word.place ^ word.xor
    return word.xor if 0 < other < words else 0


def _random(word: WrongWord, expected: Words, words: int) -> int:
    """The bit between a place and the place whose random word was found there.

    0 where no place one bit away has that word.
    """
    for mask in (0, ALL):
        here = Words("random", expected.seed, mask)
        if here.word(word.place) != word.expected:
            continue
        for bit in range(words.bit_length()):
            other = word.place ^ 1 << bit
            if other < words and here.word(other) == word.got:
                return 1 << bit
    return 0


def ranges(bits: int) -> str:
    """Bit positions in the usual notation: `5`, `0-63`, `0-3,21`."""
    texts, bit = [], 0
    while bits >> bit:
        if not bits >> bit & 1:
            bit += 1
            continue
        end = bit
        while bits >> end + 1 & 1:
            end += 1
        texts.append(str(bit) if end == bit else f"{bit}-{end}")
        bit = end + 1
    return ",".join(texts)


class Map:
    """The regions of a memory of `words` words with wrong words, over all passes."""

    def __init__(self, words: int) -> None:
        self._words = words
        self._regions: dict[int, tuple[int, int]] = {}

    def add(self, record: SweepRecord) -> None:
        """Add the wrong words of one pass."""
        for region, (wrong, bits) in record.regions.items():
            before, known = self._regions.get(region, (0, 0))
            self._regions[region] = before + wrong, known | bits

    def rows(self) -> list[list[float | str]]:
        """A row for each region with a wrong word.

        From and to MiB of the tested memory, number of wrong words, and the wrong bits.
        """
        size = region_tiles(self._words) * TILE
        return [
            [
                region * size * WORD / _MIB,
                min((region + 1) * size, self._words) * WORD / _MIB,
                wrong,
                ranges(bits),
            ]
            for region, (wrong, bits) in sorted(self._regions.items())
        ]
