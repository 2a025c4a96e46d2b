"""The interface of `kernels/vram.cu`: the arguments of a sweep, and the record of wrong words.

The record is an array of 64-bit words outside the tested memory, cleared before each pass. Standard
library only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.loads.vram.passes import TILE, Sweep
from acceptance.loads.vram.words import ALL

FILE = "vram"
THREADS = 256  # in a block; the kernels rely on it
BLOCKS = 4  # on each multiprocessor, which runs that many at a time
REGIONS = 256  # of the map
LISTED = 32  # wrong words that are listed

_BITS, _REGIONS, _ANY, _LIST = 3, 67, 323, 579
RECORD = _LIST + 3 * LISTED  # words
_NO_STRIPE = 62


class SweepArguments(ctypes.Structure):
    """The kernels' structure `Sweep`, in units of vectors of two words, except for `rest`."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            *(
                "begin",
                "tiles",
                "rest",
                "shift",
                "read_seed",
                "read_mask",
                "write_seed",
                "write_mask",
            ),
            *("stripe", "role", "descending", "region_tiles"),
        )
    ]


def region_tiles(words: int) -> int:
    """Tiles in each region of a memory of `words` words; the last region may have fewer."""
    return max(1, -(-words // (TILE * REGIONS)))


def arguments(sweep: Sweep, words: int) -> SweepArguments:
    """The kernel arguments of a sweep in a memory of `words` words.

    Raises ValueError for a sweep that is not inside that memory.
    """
    reads, writes = sweep.reads or sweep.writes, sweep.writes or sweep.reads
    inside = 0 <= sweep.begin <= sweep.begin + sweep.count <= words
    if reads is None or writes is None or not inside or sweep.begin % TILE or sweep.shift % 2:
        raise ValueError(f"{sweep} is no sweep of a memory of {words} words")
    return SweepArguments(
        *(sweep.begin // 2, sweep.tiles, sweep.rest, sweep.shift // 2 & ALL),
        *(reads.seed, reads.mask, writes.seed, writes.mask),
        *(
            _NO_STRIPE if sweep.stripe is None else sweep.stripe,
            sweep.role,
            sweep.descending,
            region_tiles(words),
        ),
    )


@dataclass(frozen=True, slots=True)
class WrongWord:
    """One wrong word: its place in the tested memory, its expected and its actual value."""

    place: int
    expected: int
    got: int

    @property
    def xor(self) -> int:
        """The differing bits."""
        return self.expected ^ self.got


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """The kernels' findings of one pass."""

    seen: int  # words that were written or compared
    wrong: int
    told: int  # wrong words whose bits were counted
    every: int  # bits that are wrong in all of them
    bits: dict[int, int]  # how often each bit was wrong among the counted words
    regions: dict[int, tuple[int, int]]  # region -> wrong words, and the bits that were wrong there
    first: tuple[WrongWord, ...]  # some of the first found, by place

    @property
    def any(self) -> int:
        """Bits that are wrong in any of them."""
        found = 0
        for _, bits in self.regions.values():
            found |= bits
        return found


def blank() -> list[int]:
    """A record cleared for a pass."""
    return [ALL if place == 2 else 0 for place in range(RECORD)]


def record(words: Sequence[int]) -> SweepRecord:
    """Read a record; raises ValueError for a wrong length."""
    if len(words) != RECORD:
        raise ValueError(f"a record has {RECORD} words, not {len(words)}")
    counts, bits = words[_REGIONS:_ANY], words[_ANY:_LIST]
    listed = [
        WrongWord(*words[place : place + 3])
        for place in range(_LIST, _LIST + 3 * min(words[1], LISTED), 3)
    ]
    return SweepRecord(
        seen=words[0],
        wrong=sum(counts),
        told=words[1],
        every=words[2],
        bits={bit: count for bit, count in enumerate(words[_BITS:_REGIONS]) if count},
        regions={place: (count, bits[place]) for place, count in enumerate(counts) if count},
        first=tuple(sorted(listed, key=lambda one: one.place)),
    )
