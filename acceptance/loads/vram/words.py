"""The words that lie in a tested memory: what a word is follows from its number, a seed and a mask,
so nothing is kept beside the memory.

Families, before the mask (bits that are inverted in every word):

- `number`: the word's own number. Where an address line fails, a word shows up in another's place,
  and says whose it is.
- `constant`: 0, so the mask itself.
- `walk`: one bit, which moves on by one from word to word; the seed says where it begins.
- `random`: `kernels/vram.cu` says how. Words of even number are all different, and so are those of
  odd number.

The GPU makes them by `kernels/vram.cu`; the same is said here twice more, for one word in whole
numbers and for many with numpy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        """The same with every bit inverted."""
        return replace(self, mask=self.mask ^ ALL)

    def word(self, number: int) -> int:
        """The word of one number (from 0 below 2**64)."""
        return _plain(self.family, number, self.seed) ^ self.mask

    def array(self, first: int, count: int) -> NDArray[np.uint64]:
        """The words of `count` numbers from `first` on."""
        import numpy as np

        numbers = np.arange(count, dtype=np.uint64) + np.uint64(first)
        return _many(self.family, numbers, self.seed) ^ np.uint64(self.mask)


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


def _many(family: str, numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    import numpy as np

    half = np.uint64(32)
    if family == "number":
        return numbers
    if family == "constant":
        return np.zeros_like(numbers)
    if family == "walk":
        return np.uint64(1) << ((numbers + np.uint64(seed)) & np.uint64(63))
    mixed = (numbers >> np.uint64(1)) * np.uint64(_FIRST) + np.uint64(seed)
    mixed = (mixed ^ mixed >> half) * np.uint64(_SECOND)
    even = mixed ^ mixed >> half
    odd = (even << half | even >> half) * np.uint64(_THIRD) + np.uint64(_ADDED)
    return np.where(numbers & np.uint64(1), odd ^ odd >> half, even)
