from __future__ import annotations

import pytest
from cases import each

from acceptance.loads.miscompare import WrongElement
from acceptance.loads.vram.findings import Map, address_bits, ranges, wrong_words
from acceptance.loads.vram.passes import ALL, TILE, SweepRecord, Words, WrongWord, seed_of

WORDS = 1000 * TILE
RANDOM = Words("random", seed_of(1))
NUMBER = Words("number")


def found(*first: WrongWord, wrong: int = 0, told: int = 0) -> SweepRecord:
    wrong, told = wrong or len(first), told or len(first)
    return SweepRecord(WORDS, wrong, told, 0, {}, {0: (wrong, 1)}, first)


def swapped(words: Words, place: int, other: int) -> WrongWord:
    return WrongWord(place, words.word(place), words.word(other))


@each("words", [NUMBER, NUMBER.inverse(), RANDOM, RANDOM.inverse()])
@each("bit", [0, 1, 12, 20])
def test_words_in_each_others_places(words: Words, bit: int) -> None:
    pairs = [swapped(words, place, place ^ 1 << bit) for place in (5, 77777, 400000)]
    assert address_bits(found(*pairs), words, WORDS) == (bit + 3,)


def test_own_numbers_tell_several_bits() -> None:
    pairs = [swapped(NUMBER, place, place ^ 0b1000010) for place in (5, 77777, 400000)]
    assert address_bits(found(*pairs), NUMBER, WORDS) == (4, 9)


def test_what_is_most_common_counts() -> None:
    pairs = [swapped(NUMBER, place, place ^ 64) for place in (5, 77777, 400000)]
    assert address_bits(found(*pairs, WrongWord(9, 9, 8)), NUMBER, WORDS) == (9,)


@pytest.mark.parametrize("words", [NUMBER, RANDOM])
def test_one_flipped_bit_is_no_address(words: Words) -> None:
    assert (
        address_bits(found(WrongWord(77, words.word(77), words.word(77) ^ 32)), words, WORDS) == ()
    )


def test_flipped_random_words_are_no_address() -> None:
    flips = [WrongWord(place, RANDOM.word(place), RANDOM.word(place) ^ 32) for place in range(20)]
    assert address_bits(found(*flips), RANDOM, WORDS) == ()


def test_other_words_are_no_address() -> None:
    outside = [swapped(NUMBER, place, place ^ 1 << 40) for place in (5, 6)]
    assert address_bits(found(*outside), NUMBER, WORDS) == ()
    assert address_bits(found(WrongWord(5, 5, 0), WrongWord(6, 6, 0)), NUMBER, WORDS) == (), (
        "memory that nothing was written to"
    )
    constant = Words("constant", 0, ALL)
    assert address_bits(found(WrongWord(5, ALL, 4), WrongWord(6, ALL, 2)), constant, WORDS) == ()
    shifted = [WrongWord(place, RANDOM.word(place + 2), RANDOM.word(place)) for place in (0, 10)]
    assert address_bits(found(*shifted), RANDOM, WORDS) == ()


def test_a_miscompare_says_what_where_and_which_bits() -> None:
    first = tuple(WrongWord(place, 0xFF00, 0xFF20) for place in range(3, 23))
    record = SweepRecord(WORDS, 20, 20, 0x20, {5: 20}, {0: (20, 0x20)}, first)
    told = wrong_words(record, Words("constant", 0, 0xFF00), WORDS)
    assert told == {
        "words": 20,
        "bits": {5: 20},
        "xor_or": "0000000000000020",
        "xor_and": "0000000000000020",
        "first": tuple(
            WrongElement(
                address=8 * place,
                expected="000000000000ff00",
                got="000000000000ff20",
                xor="0000000000000020",
            )
            for place in range(3, 11)
        ),
        "bits_of": None,
        "address_bits": (),
    }
    assert wrong_words(found(wrong=5000, told=4000), None, WORDS)["bits_of"] == 4000


@each(
    "bits, told",
    [
        (0, ""),
        (1, "0"),
        (1 << 63, "63"),
        (ALL, "0-63"),
        (0b101111, "0-3,5"),
        (0b110 | 1 << 40, "1-2,40"),
    ],
)
def test_ranges(bits: int, told: str) -> None:
    assert ranges(bits) == told


def test_the_map_adds_up() -> None:
    one = Map(1000 * TILE + 10)  # regions of four tiles, 64 KiB
    one.add(SweepRecord(0, 3, 3, 0, {}, {0: (1, 1), 249: (2, 2)}, ()))
    one.add(SweepRecord(0, 4, 4, 0, {}, {249: (3, 8), 250: (1, 16)}, ()))
    assert one.rows() == [
        [0.0, 0.0625, 1, "0"],
        [15.5625, 15.625, 5, "1,3"],
        [15.625, 15.625 + 80 / (1 << 20), 1, "4"],
    ]
    assert Map(10).rows() == []
