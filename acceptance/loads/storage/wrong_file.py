"""Wrong blocks of a file: compared with what it holds by its seed, or made on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from acceptance.core.parts import Component
from acceptance.loads import bits
from acceptance.loads.copy.pattern import TransferFault, fault
from acceptance.loads.miscompare import FileCheck, WrongFile
from acceptance.loads.storage.contract import Kind
from acceptance.loads.storage.scratch_file import ScratchFile
from acceptance.loads.storage.tokens import WORD, Content, Words, origin

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
