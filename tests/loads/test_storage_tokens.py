"""The content of the storage loads' files: every window by itself, and where a word belongs."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each

from acceptance.core.parts import Part
from acceptance.loads.exact_product import spread
from acceptance.loads.miscompare import WrongFile
from acceptance.loads.storage.tokens import (
    BLOCK,
    PLACE_BITS,
    SEED_BITS,
    Content,
    Origin,
    Words,
    faults,
    flip,
    origin,
    wrong_file,
)

CONTENT = Content(77, 3)
DISK = Part("disk", "vda")


def test_the_words_are_those_of_the_sequence_from_their_number_on() -> None:
    assert CONTENT.number(16) == (77 << 10 | 3) << PLACE_BITS | 2
    assert CONTENT.words(16, 20_000).tolist() == spread(20_000, CONTENT.number(16)).tolist()
    assert CONTENT.words(0, 8)[3:].tolist() == CONTENT.words(24, 5).tolist()


def test_a_window_is_computed_without_its_neighbours() -> None:
    whole = CONTENT.words(0, 1000).view(np.uint16)
    starts = np.array([0, 1, 2, 3, 5, 1234, 4000 - 1025])
    windows = CONTENT.windows(starts, 1025)
    assert windows.dtype == np.uint16
    for start, window in zip(starts, windows, strict=True):
        assert window.tolist() == whole[start : start + 1025].tolist()
    assert CONTENT.windows(np.array([7]), 1).tolist() == [[whole[7]]]


def test_the_whole_vocabulary_occurs_evenly() -> None:
    counts = np.bincount(CONTENT.words(0, 1 << 18).view(np.uint16), minlength=1 << 16)
    assert counts.size == 1 << 16
    assert counts.min() > 0  # 16 are due of each
    assert counts.max() < 48


@each("seed, turn, offset", [(1, 1, 0), (77, 3, 8), ((1 << SEED_BITS) - 1, 1023, (1 << 37) - 8)])
def test_a_word_says_where_it_belongs(seed: int, turn: int, offset: int) -> None:
    word = int(Content(seed, turn).words(offset, 1)[0])
    assert origin(word) == Origin(seed, turn, offset)


@each("seed, turn", [(-1, 0), (1 << SEED_BITS, 0), (1, -1), (1, 1024)])
def test_what_has_no_numbers_of_its_own_is_refused(seed: int, turn: int) -> None:
    with pytest.raises(ValueError, match="have no numbers of their own"):
        Content(seed, turn)


def test_right_words_have_no_fault() -> None:
    assert list(faults(CONTENT, 4096, CONTENT.words(4096, 3000))) == []


def described(got: Words, offset: int = 0) -> list[WrongFile]:
    return [
        wrong_file(DISK, "feed", "f", 2, CONTENT, begin, found)
        for begin, found in faults(CONTENT, offset, got)
    ]


def test_every_wrong_block_is_found_with_its_offset_and_bits() -> None:
    got = CONTENT.words(8192, 1537)
    for index in (0, 511, 1536):
        flip(got, index)
    found = described(got, 8192)
    assert [(one.block, one.offset, one.words) for one in found] == [
        (2, 8192, 2),
        (5, 8192 + 8 * 1536, 1),
    ]
    assert found[0].number == 2
    assert int(found[0].want, 16) == int(CONTENT.words(8192, 1)[0])
    assert int(found[0].want, 16) ^ int(found[0].got, 16) == int(found[0].xor, 16) == 1 << 17
    assert (found[0].of_offset, found[0].of_turn, found[0].unwritten) == (None, None, 0)


@each(
    "of, offset, turn",
    [(Content(77, 3), 3 * BLOCK, 3), (Content(77, 2), BLOCK, 2), (Content(78, 3), BLOCK, None)],
)
def test_a_block_of_elsewhere_or_of_before_says_where_it_belongs(
    of: Content, offset: int, turn: int | None
) -> None:
    got = CONTENT.words(0, 1024)
    got[512:] = of.words(offset, 512)
    (found,) = described(got)
    assert (found.offset, found.words) == (BLOCK, 512)
    assert (found.of_offset, found.of_turn) == (None if turn is None else offset, turn)


def test_words_that_were_never_read_are_counted() -> None:
    got = CONTENT.words(0, 512)
    got[500:] = 0
    (found,) = described(got)
    assert (found.words, found.unwritten, found.got) == (12, 12, "0" * 16)
