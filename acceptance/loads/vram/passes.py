"""One pass over a memory: sweeps by our kernels, and copies inside it.

They are queued together, timed as one, and judged by one record. Sizes and places are in words of 8
bytes from the beginning of the tested memory. Standard library only.

The words of a tested memory: functions of a number, a seed and a mask.

So no copy of them is kept beside the memory. The mask names the bits that are inverted in every
word. Families, before the mask:

- `number`: the word's own number. Where an address line fails, a word appears in another's place,
  and says where it belongs.
- `constant`: 0, so the mask itself.
- `walk`: one bit, which moves on by one from word to word, beginning at the seed.
- `random`: defined in `kernels/vram.cu`. Words of even number are all different, and so are those
  of odd number.

The GPU makes the words by `kernels/vram.cu`. This module makes one word of the same by Python's
integers.

The interface of `kernels/vram.cu`: the arguments of a sweep, and the record of wrong words.

The record is an array of 64-bit words outside the tested memory, cleared before each pass. Standard
library only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace

ALL = (1 << 64) - 1
FAMILIES = ("number", "constant", "walk", "random")
_FIRST, _SECOND, _THIRD, _ADDED = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
    0xD1B54A32D192ED03,
)


@dataclass(frozen=True, slots=True)
class Words:
    """A word for every number."""

    family: str
    seed: int = 0
    mask: int = 0

    def inverse(self) -> Words:
        """The same words with every bit inverted."""
        return replace(self, mask=self.mask ^ ALL)

    def word(self, number: int) -> int:
        """The word of one number (0 to 2**64 - 1)."""
        return _plain(self.family, number, self.seed) ^ self.mask


def seed_of(place: int) -> int:
    """A seed for `random`: number `place` of the SplitMix64 sequence."""
    mixed = place * _FIRST & ALL
    mixed = (mixed ^ mixed >> 30) * _SECOND & ALL
    mixed = (mixed ^ mixed >> 27) * _THIRD & ALL
    return mixed ^ mixed >> 31


def _plain(family: str, number: int, seed: int) -> int:
    if family == "number":
        return number
    if family == "constant":
        return 0
    if family == "walk":
        return 1 << ((number + seed) & 63)
    mixed = ((number >> 1) * _FIRST + seed) & ALL
    mixed = (mixed ^ mixed >> 32) * _SECOND & ALL
    mixed ^= mixed >> 32
    if number & 1:
        mixed = (((mixed << 32 | mixed >> 32) & ALL) * _THIRD + _ADDED) & ALL
        mixed ^= mixed >> 32
    return mixed


WORD = 8  # bytes
TILE = 2048  # words, 16 KiB: the unit of work of a block of threads


@dataclass(frozen=True, slots=True)
class Sweep:
    """Compares every word of a part of the memory (`reads`), then overwrites it (`writes`).

    One of the two may be None. The word at a place is that of the number place + `shift`. `begin`
    is a multiple of a tile and `shift` of two words. With a `stripe`, only one of every two stripes
    of 2**stripe tiles is visited, the first (`role` 0) or the second (1); the rest after the last
    whole pair of stripes is not visited. `descending` goes from the last tile to the first.
    """

    reads: Words | None
    writes: Words | None
    begin: int
    count: int
    shift: int = 0
    stripe: int | None = None
    role: int = 0
    descending: bool = False

    @property
    def kernel(self) -> str:
        """The name of its kernel in `kernels/vram.cu`."""
        words = self.reads or self.writes
        if words is None or (self.writes or words).family != words.family:
            raise ValueError("a sweep reads or writes words of one family")
        kind = "fill" if self.reads is None else "verify" if self.writes is None else "turn"
        return f"{kind}_{words.family}"

    @property
    def tiles(self) -> int:
        """Number of tiles visited."""
        whole = self.count // TILE
        return whole if self.stripe is None else whole >> self.stripe + 1 << self.stripe

    @property
    def rest(self) -> int:
        """Number of words visited after the last whole tile."""
        return self.count % TILE if self.stripe is None else 0

    @property
    def words(self) -> int:
        """Number of words visited."""
        return self.tiles * TILE + self.rest

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.words * WORD * ((self.reads is not None) + (self.writes is not None))


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of `words` words by CUDA's own copy; source and target do not overlap."""

    source: int
    target: int
    words: int

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return 2 * self.words * WORD


@dataclass(frozen=True, slots=True)
class Spin:
    """A GPU that does not answer for a quarter of an hour or more, for `--inject hang`."""

    moved = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """Work queued together, in this order, and a pause of `rest_s` seconds after it."""

    works: tuple[Sweep | Copy | Spin, ...]
    rest_s: float = 0.0

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return sum(work.moved for work in self.works)

    @property
    def words(self) -> int:
        """Number of words that our kernels must write or compare.

        The kernels' own count must equal it.
        """
        return sum(work.words for work in self.works if isinstance(work, Sweep))

    @property
    def reads(self) -> Words | None:
        """The words that the first comparing sweep expects."""
        return next(
            (work.reads for work in self.works if isinstance(work, Sweep) and work.reads), None
        )


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
