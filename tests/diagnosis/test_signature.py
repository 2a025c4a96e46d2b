"""Words for bits and places, and the sign that words were stored or fetched elsewhere."""

from __future__ import annotations

from cases import each
from worded import worded

from acceptance.diagnosis.signature import (
    Cell,
    differing_bits,
    extent,
    power_of_two,
    repeated_cell,
    swapped_addresses,
)
from acceptance.loads.miscompare import WrongElement


def test_powers_of_two() -> None:
    assert [number for number in range(-2, 70) if power_of_two(number)] == [1, 2, 4, 8, 16, 32, 64]


@each(
    "word, width, told",
    [
        (0x1, 8, "XOR 01 (bit 0)"),
        (0x3, 16, "XOR 0003 (bits 0-1)"),
        (0x5, 1, "XOR 5 (bits 0, 2)"),
        (0x555, 16, "XOR 0555 (bits 0, 2, 4, 6, 8, 10)"),
        (0x1555, 16, "XOR 1555 (bits 0, 2, 4, 6, 8, 10 ...)"),
    ],
)
def test_bits_are_told_by_number_the_first_six_ranges_of_them(
    word: int, width: int, told: str
) -> None:
    assert worded(differing_bits(word, width)) == told


def test_an_extent_is_one_number_where_all_are_equal() -> None:
    assert extent([]) is None
    assert extent([70.4, 69.6]) == "70"
    assert extent([86.0, 83.0, 85.0]) == "83 .. 86"


def held(*words: tuple[int, int, int]) -> list[WrongElement]:
    """Words of (address, expected, got)."""
    return [
        WrongElement(
            address=address, expected=f"{expected:x}", got=f"{got:x}", xor=f"{expected ^ got:x}"
        )
        for address, expected, got in words
    ]


def test_two_words_in_each_others_place_lie_on_an_address_line() -> None:
    assert swapped_addresses(held((0, 10, 11), (8, 11, 10))) == (0, 8)


def test_the_line_that_most_words_differ_in_is_told_of() -> None:
    """One word beside them holds another's by chance, further away."""
    assert swapped_addresses(held((512, 14, 10), (0, 10, 11), (8, 11, 10))) == (0, 8)


@each(
    "words",
    [
        [],
        held((0, 10, 11), (8, 12, 13)),  # nobody's words
        held((0, 10, 11), (8, 11, 99)),  # one alone is chance
        held((0, 10, 11), (24, 11, 10)),  # two address bits
        held((0, 10, 10), (8, 11, 11)),  # each is where it belongs
        held(
            (0, 10, 11), (8, 11, 10), (64, 10, 11)
        ),  # words that were not all to be different prove nothing
    ],
    told=["none", "strangers", "one", "two lines", "right", "alike"],
)
def test_what_proves_no_address_line(words: list[WrongElement]) -> None:
    assert swapped_addresses(words) is None


@each(
    "found, more",
    [
        ([{(64, 3)}, {(64, 3)}], None),
        ([{(64, 3)}, {(64, 3)}, {(8, 0)}, {(9, 0)}], None),
        ([{(64, 3), (8, 1)}, {(64, 3), (8, 1)}, {(64, 3)}], 1),
    ],
    told=["in all of them", "in half of them", "another one with it"],
)
def test_a_cell_that_comes_again_is_told_with_how_many_others(
    found: list[set[Cell]], more: int | None
) -> None:
    message = repeated_cell("cell_in_passes", "passes", found)
    assert message is not None
    assert message.values.get("more") == more
    assert (message.values["address"], message.values["bit"]) == ("0x40", 3)


def test_a_cell_in_less_than_half_of_them_is_none_that_comes_again() -> None:
    others: list[set[Cell]] = [{(place, 0)} for place in range(3)]
    assert repeated_cell("cell_in_passes", "passes", [{(64, 3)}, {(64, 3)}, *others]) is None


def test_alone_a_cell_counts_only_where_nothing_else_is_wrong() -> None:
    found: list[set[Cell]] = [{(64, 3)}, {(64, 3), (7, 7)}, {(8, 0)}, {(9, 0)}]
    assert repeated_cell("cell_in_passes", "passes", found) is not None
    assert repeated_cell("cell_in_passes", "passes", found, alone=True) is None
    right: list[set[Cell]] = [set(), set(), set()]
    assert repeated_cell("cell_in_passes", "passes", [*found[:1] * 2, *right], alone=True) is None
