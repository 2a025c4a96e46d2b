"""Wrong words of memory: one cell, a data line, or many; and the evidence as it is printed."""

from __future__ import annotations

from cases import each
from worded import worded
from wrong_results import Fact, vram

from acceptance.diagnosis.signature import Signature, vram_signature
from acceptance.loads import miscompare
from acceptance.loads.miscompare import WrongMemory


def look(*facts: Fact) -> Signature:
    found = []
    for fact in facts:
        one = miscompare.read(fact)
        assert isinstance(one, WrongMemory)
        found.append(one)
    told: Signature = worded(vram_signature(found))
    return told


def test_the_evidence_is_of_the_pass_that_found_first_and_the_bits_of_all() -> None:
    found = look(vram([(96, 0, 2)], number=3, pattern="checker"), vram([(64, 0, 4)], number=1))
    assert found.evidence == (
        "2 wrong words in 2 passes (checker, march C-), first at byte 0x40 (4 for 0), XOR "
        "0000000000000006 (bits 1-2), "
        "found 1001 s after boot"
    )
    one = look(vram([(64, 0, 4)])).evidence
    assert one.startswith(
        "1 wrong word in 1 pass (march C-), first at byte 0x40 (4 for 0), XOR "
        "0000000000000004 (bit 2), "
    )


def test_different_bits_at_many_addresses_are_no_data_line() -> None:
    assert look(vram([(64, 0, 4), (128, 0, 8)])).looks == "Many words with different bits"
    assert look(vram([(64, 0, 4), (128, 1, 5)])).looks.startswith(
        "Always bit 2, at many addresses: a data line"
    )


@each("lines, told", [([17], "bit 17"), ([3, 17], "bits 3, 17")])
def test_address_lines_are_told_by_number(lines: list[int], told: str) -> None:
    assert look(vram([(64, 8, 9)], address_bits=lines)).looks == (
        f"Words lie where others belong: the places differ in address {told}"
    )


# --- a cell ---


def stuck(number: int, *more: tuple[int, int, int]) -> Fact:
    return vram([(64, 0, 4), *more], number=number)


ELSEWHERE = [vram([(1024 * n, 0, 1 << n)], number=10 + n) for n in range(1, 4)]
MORE_THAN_LISTED = [
    vram([(8 * n, 0, 1 << n) for n in range(1, 33)], words=9000, number=20 + n) for n in range(3)
]


@each(
    "facts, told",
    [
        ([stuck(1), stuck(2)], "in 2 of 2 passes (byte 0x40, bit 2)"),
        ([stuck(1), stuck(2), *ELSEWHERE[:2]], "in 2 of 4 passes (byte 0x40, bit 2)"),
        (
            [stuck(1, (8, 0, 1)), stuck(2), stuck(3, (8, 0, 1))],
            "in 3 of 3 passes (byte 0x40, bit 2, and 1 more such cells)",
        ),
        (
            [vram([(64, 0, 6)], number=n) for n in (1, 2)],
            "in 2 of 2 passes (byte 0x40, bit 1, and 1 more such cells)",
        ),
    ],
)
def test_the_same_bit_of_the_same_word_is_a_cell(facts: list[Fact], told: str) -> None:
    found = look(*facts)
    assert found.kind == "memory bit"
    assert found.looks == f"The same bit at the same address {told}"


@each(
    "facts",
    [
        [stuck(1), stuck(2), *ELSEWHERE],  # two of five
        [stuck(1), stuck(2), *MORE_THAN_LISTED],  # of most words nobody knows where they are
        [
            stuck(1),
            stuck(2, (8, 0, 1)),
            stuck(3, (16, 0, 2)),
        ],  # the one pass that shows it alone is not half of them
    ],
    told=["two of five", "not listed", "with others"],
)
def test_a_cell_that_tells_of_less_than_half_explains_nothing(facts: list[Fact]) -> None:
    assert look(*facts).kind == "many"
