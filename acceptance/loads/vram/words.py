"""The words of a tested memory: functions of a number, a seed and a mask.

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
"""

from __future__ import annotations

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
