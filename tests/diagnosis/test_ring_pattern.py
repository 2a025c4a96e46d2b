"""Wrong products, by themselves and together: where each kind begins and ends, and the evidence
as it is printed.
"""

from __future__ import annotations

from collections.abc import Sequence

from cases import each
from worded import worded
from wrong_results import SIDE, Fact, described_keys, one_bit, ring, scrambled, units

from acceptance.diagnosis.ring_pattern import product_signature, right_moments_of
from acceptance.diagnosis.signature import GpuHeat, Signature
from acceptance.loads import miscompare
from acceptance.loads.miscompare import WrongProduct


def rings(facts: Sequence[Fact]) -> list[WrongProduct]:
    found = []
    for fact in facts:
        one = miscompare.read(fact)
        assert isinstance(one, WrongProduct)
        found.append(one)
    return found


def seen(
    *facts: Fact, heat: Sequence[float | None] = (), right: Sequence[float | None] = ()
) -> Signature:
    own = [GpuHeat(one) for one in heat] or [None] * len(facts)
    found: Signature = worded(
        product_signature(
            list(zip(rings(facts), own, strict=True)), [GpuHeat(one) for one in right]
        )
    )
    return found


def again(fact: Fact) -> Fact:
    """A product that was right when it was read again."""
    return {key: value for key, value in fact.items() if key not in described_keys()}


def xored(xor: int, count: int, stride: int = 64, *, width: int = 2) -> Fact:
    """Every so manyth element with the same bits wrong."""
    return ring([(1 + n * stride, n, n ^ xor) for n in range(count)], width=width)


# --- one product ---

WIDE_APART = "Many elements a power of two apart with many bits wrong: every 64th element"
IRREGULAR = "Elements without a regular distance and with many bits wrong"
COLUMN = (
    f"A whole column (every {SIDE}nd element): one value of the second operand was read or "
    "passed on wrong"
)
BESIDE = (
    "Elements beside each other: a part of the product that one multiprocessor made, or a "
    "block "
    "of memory"
)
SAME_BIT = "Always the same bit, in many elements: one line of a bus, or one lane"


@each(
    "fact, kind, words",
    [
        # many elements, many bits
        (xored(0xF000, 8), "address line", WIDE_APART),
        (xored(0xF000, 7), "many", IRREGULAR),
        (xored(0x7000, 8), "many", IRREGULAR),  # three of sixteen bits
        (xored(0xE0, 8, width=1), "address line", WIDE_APART),  # three of eight
        (xored(0xC0, 8, width=1), "many", IRREGULAR),
        (xored(0x4000, 3, 2), "datapath", SAME_BIT),
        (xored(0x4000, 2, 2), "many", IRREGULAR),
        # distances
        (
            xored(0x7000, 3, 17),
            "datapath",
            "A regular distance that is no power of two: every 17th element",
        ),
        (xored(0x7000, 2, 17), "many", IRREGULAR),
        (xored(0x7000, 3, SIDE), "datapath", COLUMN),
        (xored(0x7000, 2, SIDE), "many", IRREGULAR),
        (xored(0x7000, 2, 1), "many", BESIDE),
        # low bits
        (units(1), "datapath", "Wrong in the low bits only: off by one unit in the last place"),
        (
            units(2),
            "datapath",
            "Wrong in the low bits only: every 2nd element, off by one unit in the last place",
        ),
        (
            units(17, 3),
            "datapath",
            "Wrong in the low bits only: every 17th element, off by one unit in the last place",
        ),
        (units(17, 2), "datapath", "Wrong in the low bits only: off by one unit in the last place"),
        (
            ring([(0, 8, 9), (5, 8, 11)]),
            "datapath",
            "Wrong in the low bits only: off by up to 3 units in the last place",
        ),
        (
            ring([(0, 0, 8), (5, 16, 24)]),
            "datapath",
            "Wrong in the low bits only: off by up to 8 units in the last place",
        ),
        (ring([(0, 0, 16), (5, 0, 32)]), "many", IRREGULAR),
        (
            ring([(0, 0, 3), (5, 0, 2)], width=1),
            "datapath",
            "Wrong in the low bits only: off by up to 3 units in the last place",
        ),
        # two of three differing bits are low
        (ring([(0, 0, 3), (5, 0, 4)], width=1), "many", IRREGULAR),
        # Seven of ten.
        (
            ring([(n * n, 0, 1) for n in range(7)] + [(n * n, 0, 1 << 15) for n in range(7, 10)]),
            "datapath",
            "Wrong in the low bits only: off by up to 32768 units in the last place",
        ),
        # no numbers
        (ring([(77, 0x4248, 0x7FC0)], nan=1), "not a number", "Elements that are NaN"),
        (ring([(77, 0x4248, 0x7F80)], infinite=1), "not a number", "Elements that are infinite"),
        (
            ring([(77, 0x4248, 0x7FC0), (78, 0x4248, 0x7F80)], nan=1, infinite=1),
            "not a number",
            "Elements that are NaN and infinite",
        ),
    ],
)
def test_the_looks_of_one_product(fact: Fact, kind: str, words: str) -> None:
    found = seen(fact)
    assert (found.kind, found.looks) == (kind, words)


@each(
    "stride, told",
    [
        *(
            (11, "11th"),
            (12, "12th"),
            (13, "13th"),
            (14, "14th"),
            (21, "21st"),
            (22, "22nd"),
            (23, "23rd"),
            (101, "101st"),
        ),
        *((111, "111th"), (112, "112th"), (113, "113th"), (3, "3rd")),
    ],
)
def test_distances_are_told_as_people_say_them(stride: int, told: str) -> None:
    assert (
        seen(units(stride, 9)).looks
        == f"Wrong in the low bits only: every {told} element, off by one unit in the last place"
    )


# --- the same cell ---


def cell(turn: int, *more: tuple[int, int, int], xor: int = 8) -> Fact:
    """A product in the same slot with the same element wrong, and others."""
    return ring([(1234567, 0x3F80, 0x3F80 ^ xor), *more], slot=5, iteration=5 + 8 * turn)


def other(number: int) -> Fact:
    return one_bit(number % 16, 1000 * number, slot=number % 4, iteration=300 + number)


@each(
    "facts, told",
    [
        ([cell(0), cell(1)], "in 2 of 2 products (byte {at}, bit 3)"),
        ([cell(0), cell(1), other(1), other(2)], "in 2 of 4 products (byte {at}, bit 3)"),
        (
            [cell(0, (2345678, 0, 1)), cell(1), cell(2, (2345678, 0, 1))],
            "in 3 of 3 products (byte {at}, bit 3, and 1 more such cells)",
        ),
        (
            [cell(0, xor=0x18), cell(1, xor=0x18)],
            "in 2 of 2 products (byte {at}, bit 3, and 1 more such cells)",
        ),
    ],
)
def test_the_same_bit_at_the_same_address_is_a_cell(facts: list[Fact], told: str) -> None:
    told = told.format(at=hex(2 * (5 * SIDE * SIDE + 1234567)))
    found = seen(*facts)
    assert (found.kind, found.looks) == ("memory bit", f"The same bit at the same address {told}")


@each(
    "facts",
    [
        [cell(0), cell(1), other(1), other(2), other(3)],  # two of five
        [cell(0, xor=0x38), cell(1, xor=0x38)],  # three bits of one element are no stuck cell
        # nor is one bit beside a wide one
        [cell(0, (2345678, 0, 0x7F00)), cell(1, (2345678, 0, 0x7F00))],
        # Of most elements nobody knows where they are.
        [
            units(17, iteration=5, slot=5),
            units(17, iteration=13, slot=5),
        ],
    ],
    told=["two of five", "three bits", "beside a wide one", "not listed"],
)
def test_what_is_no_cell(facts: list[Fact]) -> None:
    assert seen(*facts).kind != "memory bit"


# --- the same elements ---


def test_two_products_in_two_places_with_the_same_elements_are_the_chip() -> None:
    repeated = [units(17, iteration=20 + n, slot=n) for n in (0, 1)]
    assert seen(*repeated).kind == "repeatable"
    assert (
        seen(*repeated).looks
        == "The same elements with the same bits in each of 2 products one after the other"
    )
    apart = [units(17, iteration=20 + 4 * n, slot=n) for n in (0, 1)]
    assert seen(*apart).looks.startswith(
        "The same elements with the same bits in 2 of 5 products: "
    )


@each("facts",
    [
        [units(17, iteration=20, slot=3), units(17, iteration=28, slot=3)],  # one place of memory
        [units(17, iteration=20, slot=3), units(19, iteration=21, slot=4)],
        # nothing is known of their elements
        [again(one_bit(3, iteration=20, slot=3)), again(one_bit(3, iteration=21, slot=4))],
    ], told=["one place", "not the same", "read back right"],
)  # fmt: skip
def test_what_is_not_known_to_be_the_same_elements(facts: list[Fact]) -> None:
    assert not seen(*facts).looks.startswith("The same elements")


# --- heat ---


def swapped(number: int) -> Fact:
    """A product whose words are stored at each other's places."""
    words = [(1000 * number + n, 100 + n, 100 + (n ^ 4)) for n in range(64)]
    return ring(words, iteration=100 + 7 * number, slot=number)


HOT = [scrambled([5000 * n, 5000 * n + 77], iteration=100 + 7 * n, slot=n) for n in range(5)]


@each(
    "heat, right, told",
    [
        (
            [83, 84, 85],
            [80, 80, 80],
            "Wrong only at 83 degC and above, while 3 of 3 right products looked at were cooler",
        ),
        (
            [83, 84, 85],
            [80, 80, 80, None],
            "Wrong only at 83 degC and above, while 3 of 4 right products",
        ),
        ([83, 84, 85], [80, 80], None),  # two cooler ones prove nothing
        ([83, 84, 85], [80.1] * 50, None),  # cooler by what a sensor rounds
        ([83, 84], [60] * 50, None),  # nor do two wrong ones
        ([83, 84, 85, 86], [60] * 10 + [85] * 10, None),  # one in sixteen is chance
        (
            [83, 84, 85, 86, 87],
            [60] * 10 + [85] * 10,
            "Wrong only at 83 degC and above, while 10 of 20 right products",
        ),
    ],
)
def test_how_much_it_takes_to_blame_heat(
    heat: list[float], right: list[float | None], told: str | None
) -> None:
    found = seen(*HOT[: len(heat)], heat=heat, right=right)
    assert found.kind == ("many" if told is None else "thermal")
    assert found.looks.startswith(told or IRREGULAR)


@each(
    "facts, kind",
    [
        ([units(17, iteration=20 + n, slot=n) for n in range(5)], "repeatable"),
        ([swapped(n) for n in range(5)], "address line"),
    ],
    told=["repeatable", "address line"],
)
def test_what_lasts_is_not_laid_to_heat(facts: list[Fact], kind: str) -> None:
    assert seen(*facts, heat=[83, 84, 85, 86, 87], right=[60] * 50).kind == kind


# --- several ways ---


def test_products_that_are_wrong_in_several_ways_are_counted_by_kind() -> None:
    facts = [
        again(one_bit(3, iteration=1, slot=1)),
        one_bit(3, iteration=2, slot=2),
        ring([(77, 0x4248, 0x7FC0)], nan=1, iteration=3, slot=3),
        swapped(4),
        units(17, iteration=5, slot=5),
        units(16, iteration=6, slot=6),
        scrambled([99], iteration=7, slot=7),
    ]
    assert seen(*facts).looks == (
        "The products are wrong in different ways (2 x datapath, 1 x read back right, "
        "1 x one bit once, 1 x not a number, 1 x address line, 1 x many)"
    )


# --- the evidence ---


def test_a_temperature_without_a_clock_is_told_alone() -> None:
    assert seen(one_bit(3), heat=[70]).evidence.endswith(", at 70 degC")


def test_the_evidence_is_of_the_first_product_and_the_bits_of_all() -> None:
    facts = [units(17, 9, iteration=30, lap=1, begin=5), units(17, 3, iteration=20, begin=2)]
    assert seen(*facts).evidence == (
        f"2 products wrong, 3 .. 9 of {SIDE * SIDE} elements, first at byte "
        f"{5 * SIDE * SIDE * 2 + 4:#x} "
        "(element [0, 2]: 3f81 for 3f80), stride 17, XOR 000f (bits 0-3), iteration 20, 30 (lap "
        "0), made 1020 .. 1030 s after boot, "
        "at a heat that was not sampled"
    )


def test_a_product_that_was_right_when_it_was_read_again_has_no_place_and_no_bits() -> None:
    assert seen(again(one_bit(3))).evidence == (
        f"1 product wrong, 1 of {SIDE * SIDE} elements, iteration 17 (lap 0), made 1017 s after "
        "boot, at a heat that was not sampled"
    )


@each(
    "facts, stride",
    [
        ([units(17, iteration=20), again(one_bit(3, iteration=30))], "stride 17,"),
        ([units(17, iteration=20), units(16, iteration=30)], None),
        ([one_bit(3)], None),
    ],
    told=["one is not known", "not the same", "one element"],
)
def test_a_stride_is_told_where_all_have_it(facts: list[Fact], stride: str | None) -> None:
    evidence = seen(*facts).evidence
    assert (stride or "XOR") in evidence
    assert ("stride" in evidence) == (stride is not None)


@each(
    "numbers, told",
    [
        ([7], "7"),
        ([4, 3, 2, 1], "1, 2, 3, 4"),
        ([5, 4, 3, 2, 1], "1, 2, 3, 4 ..."),
        ([1, 2, 3, 4, 5, 6], "1, 2, 3, 4 ..."),
    ],
)
def test_the_first_four_numbers_are_told(numbers: list[int], told: str) -> None:
    assert (
        f"iteration {told} (lap 0)"
        in seen(*[other(n) | {"iteration": n} for n in numbers]).evidence
    )


# --- moments at which products were right ---


def moments(*products: tuple[int, float]) -> tuple[float, ...]:
    """Of wrong products of a later lap, each by its number and when it was made."""
    return right_moments_of(
        rings([one_bit(3, iteration=number, lap=1, made_s=made_s) for number, made_s in products])
    )


@each("between", [0, 1, 63, 64])
def test_as_many_moments_as_there_are_products_up_to_sixty_four(between: int) -> None:
    assert moments((10, 1000.0), (11 + between, 1001.0 + between)) == tuple(
        1001.0 + n for n in range(between)
    )


def test_of_more_every_second_and_so_on() -> None:
    assert moments((10, 1000.0), (76, 1066.0)) == tuple(1002.0 + 2 * n for n in range(32))


def test_products_of_one_number_or_one_moment_tell_of_none_between_them() -> None:
    assert moments((10, 1010.0), (10, 1011.0)) == ()
    assert moments((10, 1010.0), (14, 1010.0)) == ()
    assert moments((10, 1010.0), (14, 1009.0)) == ()
