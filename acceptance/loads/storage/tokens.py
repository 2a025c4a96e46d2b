"""The content of every test file: a fixed sequence of 64-bit words, four tokens each. Pure.

A word is the SplitMix64 mix of its number (`exact_product.spread`), which is made of the file's
seed, of a turn and of the word's place in the file. So every word of every file differs, any
window can be computed without its neighbours, and a word that stands where it does not belong
says by the inverse of the mix where it does. A token is 16 bits wide: the vocabularies of GPT-2
(50257) and its like are kept in files of uint16.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptance.loads.exact_product import mixed, spread

Words = NDArray[np.uint64]
Tokens = NDArray[np.uint16]
Places = NDArray[np.int64]

WORD = 8  # bytes
TOKEN = 2
PER_WORD = WORD // TOKEN
SEED_BITS, TURN_BITS, PLACE_BITS = 20, 10, 34  # of a word's number; the places reach 128 GiB
_BLOCK = 2**13  # words made at a time: as in `cpu.memory_random`, they stay in the core's cache
_WRAP = 1 << 64
_STEP = pow(0x9E3779B97F4A7C15, -1, _WRAP)
_FIRST = pow(0xBF58476D1CE4E5B9, -1, _WRAP)
_SECOND = pow(0x94D049BB133111EB, -1, _WRAP)


@dataclass(frozen=True, slots=True)
class Content:
    """What one file holds: the words of a seed and a turn."""

    seed: int
    turn: int

    def __post_init__(self) -> None:
        if not (0 <= self.seed < 1 << SEED_BITS and 0 <= self.turn < 1 << TURN_BITS):
            raise ValueError(f"seed {self.seed} and turn {self.turn} have no numbers of their own")

    def number(self, offset: int) -> int:
        """The number of the word at this byte of the file, a multiple of WORD."""
        return (self.seed << TURN_BITS | self.turn) << PLACE_BITS | offset // WORD

    def words(self, offset: int, count: int) -> Words:
        """The words from this byte of the file on."""
        made = np.empty(count, dtype=np.uint64)
        first = self.number(offset)
        for begin in range(0, count, _BLOCK):
            part = made[begin : begin + _BLOCK]
            part[...] = spread(part.size, first + begin)
        return _little(made)

    def windows(self, starts: Places, length: int) -> Tokens:
        """`length` tokens from each of these tokens of the file on, a row for each."""
        made = np.empty((starts.size, length), dtype=np.uint16)
        ahead = np.arange((length + 2 * PER_WORD - 2) // PER_WORD, dtype=np.uint64)
        base = np.uint64(self.number(0))
        for shift in range(PER_WORD):
            rows = np.flatnonzero(starts % PER_WORD == shift)
            first = (starts[rows] // PER_WORD).astype(np.uint64) + base
            whole = _little(mixed(first[:, None] + ahead)).view(np.uint16)
            made[rows] = whole[:, shift : shift + length]
        return made


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a word belongs: in which file, by its seed, in which turn, and at which byte."""

    seed: int
    turn: int
    offset: int


def origin(word: int) -> Origin:
    """Where this word belongs: the inverse of the mix.

    Any word has one. That a damaged one names the seed of this file is a chance of 2**-20.
    """
    number = _unshift(word, 31) * _SECOND % _WRAP
    number = _unshift(number, 27) * _FIRST % _WRAP
    number = _unshift(number, 30) * _STEP % _WRAP
    head, place = number >> PLACE_BITS, number & ((1 << PLACE_BITS) - 1)
    return Origin(head >> TURN_BITS, head & ((1 << TURN_BITS) - 1), place * WORD)


def _unshift(word: int, shift: int) -> int:
    """The x of which `word` is x ^ (x >> shift)."""
    found = word
    while word := word >> shift:
        found ^= word
    return found


def _little(words: Words) -> Words:
    """The words in the byte order of the file, on any machine."""
    return words if sys.byteorder == "little" else words.byteswap()
