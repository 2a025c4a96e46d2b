"""The copied data: 64-bit words, each of which occurs once; and their comparison.

Word i of a buffer is number `first` + i of the SplitMix64 sequence (`exact_product.spread`). That
sequence is a one-to-one map of the 64-bit numbers, as it only multiplies by odd numbers and mixes
in shifted copies of the word itself. So no word occurs twice, in one buffer or in two whose numbers
differ. A word that was left out, doubled, or swapped with another is found as surely as one with
flipped bits. Number 0 gives the word 0. No buffer begins there, so no buffer contains 0, and 0 is
the value with which destinations are spoiled.

A path whose destination is spoiled before each copy has a buffer that begins at
`first_number(seed)`. Every copy that may reach another GPU begins at `first_of(source, destination,
turn)`, so that data of another GPU, or of an earlier turn, is wrong in every word.

The processor makes the words here; a GPU makes them for itself (`device_pattern`), so no check
relies on a copy.
"""

from __future__ import annotations

import hashlib
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from acceptance.loads import bits
from acceptance.loads.exact_product import spread
from acceptance.loads.miscompare import TransferredWord

Words = NDArray[np.uint64]

WORD = 8  # bytes
SEED_SHIFT = 40  # a buffer may have 2**40 words, 8 TiB
SPOILED = 0
FLIPPED = 21  # the bit that `--inject wrong` inverts, in the middle of a buffer
LISTED = 4  # wrong words listed in a report; all are counted
_PIECE_SHIFT = 31  # a copy with a pattern of its own may have 2**31 words, 16 GiB
_BLOCK = 65536  # words made at a time: their intermediate values stay in the cache


def first_number(seed: int) -> int:
    """The sequence number of a seed's first word. The seed is 1 to 255; ValueError for another."""
    if not 1 <= seed <= 255:
        raise ValueError(f"{seed} is no seed from 1 to 255")
    return seed << SEED_SHIFT


def first_of(source: str, destination: str, turn: int) -> int:
    """The sequence number of the first word of one copy.

    `source` and `destination` are the GPUs' UUIDs, `turn` counts the copies between them. The next
    2**32 turns of a pair share no word. The start of a pair is a digest of its names; the chance
    that two pairs meet at one turn is 2**-32. All numbers are from 2**63 on, beyond those of every
    seed.
    """
    pair = hashlib.sha256(f"{source}->{destination}".encode()).digest()
    place = (int.from_bytes(pair[:4], "big") + turn) % (1 << (63 - _PIECE_SHIFT))
    return 1 << 63 | place << _PIECE_SHIFT


def write(words: Words, first: int) -> None:
    """Fill a host buffer with the words from number `first` on."""
    for begin in range(0, words.size, _BLOCK):
        part = words[begin : begin + _BLOCK]
        part[...] = spread(part.size, first + begin)


class TransferFault(TypedDict):
    """How the copy of a `WrongTransfer` differs; `beside` where it went the other way."""

    words: int
    unwritten: int
    first: tuple[TransferredWord, ...]
    beside: NotRequired[bool]


def fault(expected: Words, got: Words) -> TransferFault | None:
    """How a host buffer differs from the expected one; None where it does not.

    The whole buffer is compared, bit for bit. `unwritten` counts the wrong `words` that still hold
    the value with which the buffer was spoiled: nothing was written over them.
    """
    if bits.same_bits(expected, got):
        return None
    wrong = np.flatnonzero(expected != got)
    places = tuple(
        place(int(index), int(expected[index]), int(got[index])) for index in wrong[:LISTED]
    )
    return {
        "words": len(wrong),
        "unwritten": int(np.count_nonzero(got[wrong] == SPOILED)),
        "first": places,
    }


def place(index: int, expected: int, got: int) -> TransferredWord:
    """One wrong word."""
    return TransferredWord(
        index=index,
        expected=f"{expected:016x}",
        got=f"{got:016x}",
        xor=f"{expected ^ got:016x}",
    )
