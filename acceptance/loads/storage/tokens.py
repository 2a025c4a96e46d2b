"""The content of every test file: a fixed sequence of 64-bit words, four tokens each. Pure.

A word is the SplitMix64 mix of its number (`exact_product.spread`), which is made of the file's
seed, of a turn and of the word's place in the file. So every word of every file differs, any
window can be computed without its neighbours, and a word that stands where it does not belong
says by the inverse of the mix where it does. A token is 16 bits wide: the vocabularies of GPT-2
(50257) and its like are kept in files of uint16.

Writing and reading a whole file of tokens, piece by piece.

Wrong blocks of a file: compared with what it holds by its seed, or made on purpose.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from acceptance.core.parts import Component
from acceptance.loads import bits
from acceptance.loads.copy.pattern import TransferFault, fault
from acceptance.loads.exact_product import mixed, spread
from acceptance.loads.miscompare import FileCheck, WrongFile
from acceptance.loads.storage.contract import Kind
from acceptance.loads.storage.scratch_file import ScratchFile

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


BLOCK = 4096  # bytes: the page of the cache, and the sector of most disks
PIECE = 1 << 20  # bytes read and compared at a time


def faults(content: Content, offset: int, got: Words) -> Iterator[tuple[int, TransferFault]]:
    """The offset of each wrong block among these words of the file, and how it differs."""
    due = content.words(offset, got.size)
    if bits.same_bits(due, got):
        return
    words = BLOCK // WORD
    for begin in range(0, got.size, words):
        part = slice(begin, begin + words)
        if (found := fault(due[part], got[part])) is not None:
            yield offset + begin * WORD, found


def wrong_file(
    component: Component,
    check: FileCheck,
    file: str,
    number: int,
    content: Content,
    begin: int,
    found: TransferFault,
) -> WrongFile:
    """The wrong result of words from byte `begin` of the file on.

    Of the first wrong words, one that belongs elsewhere in a file of this seed says where.
    """
    first = found["first"][0]
    offset = begin + first.index * WORD
    origins = [(one, origin(int(one.got, 16))) for one in found["first"]]
    moved = next(((one, of) for one, of in origins if of.seed == content.seed), None)
    return WrongFile(
        component=component,
        check=check,
        file=file,
        number=number,
        block=offset // BLOCK,
        offset=offset,
        words=found["words"],
        unwritten=found["unwritten"],
        want=first.expected,
        got=first.got,
        xor=first.xor,
        of_offset=None if moved is None else moved[1].offset,
        of_turn=None if moved is None else moved[1].turn,
    )


def flip(words: Words, index: int) -> None:
    """Invert one bit of one word, as a fault on purpose."""
    words[index] ^= np.uint64(1 << 17)


def damage(file: ScratchFile, content: Content, kind: Kind | None, offset: int, base: int) -> None:
    """Do to the block at `offset` what the kind says; `flight` leaves the file as it is.

    The content begins at byte `base` of the file, and the offset counts from there.
    """
    count = BLOCK // WORD
    match kind:
        case "rest":
            words = content.words(offset, count)
            flip(words, 1)
        case "stale":
            words = replace(content, turn=content.turn - 1).words(offset, count)
        case "elsewhere":
            words = content.words((offset + BLOCK) % (file.size - base), count)
        case _:
            return
    file.write(base + offset, words.data.cast("B"))
    file.flush()


def pieces(size: int) -> Iterator[tuple[int, int]]:
    """The offset and the bytes of each piece of a file of this size."""
    for offset in range(0, size, PIECE):
        yield offset, min(PIECE, size - offset)


def write_whole(file: ScratchFile, content: Content) -> None:
    """Write the content into the whole file, and flush it."""
    for offset, size in pieces(file.size):
        file.write(offset, content.words(offset, size // WORD).data.cast("B"))
    file.flush()


def read_whole(file: ScratchFile) -> None:
    """Read the whole file, so that the page cache holds it."""
    buffer = np.empty(min(PIECE, file.size), dtype=np.uint8)
    for offset, size in pieces(file.size):
        file.read_into(offset, buffer[:size].data)
