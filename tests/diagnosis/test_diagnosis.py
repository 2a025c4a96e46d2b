"""What wrong results look like: every kind is told from every other, and
nothing that a load may print raises.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
import wrong_results as given_wrong
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from worded import worded
from wrong_results import (
    AGAIN,
    COPIED,
    INPUTS,
    SIDE,
    WHOLE,
    Fact,
    one_bit,
    ring,
    scrambled,
    units,
    vram,
)

from acceptance.core.parts import Gpu
from acceptance.diagnosis.diagnosis import Diagnosis, diagnose, right_moments
from acceptance.diagnosis.ring_pattern import MOMENTS
from acceptance.diagnosis.signature import GpuHeat, differing_bits, positions
from acceptance.loads.miscompare import WrongTransfer, read_or_keep
from acceptance.wording import words

SPREAD = random.Random(1).sample(range(SIDE * SIDE), 3000)


def diagnosed(
    facts: Sequence[Fact], heat: Sequence[GpuHeat | None], right: Sequence[GpuHeat] = ()
) -> Diagnosis:
    return diagnose([read_or_keep(fact) for fact in facts], heat, right)


def moments(facts: Sequence[Fact]) -> tuple[float, ...]:
    return right_moments([read_or_keep(fact) for fact in facts])


def seen(
    *facts: Fact, heat: Sequence[GpuHeat | None] = (), right: Sequence[GpuHeat] = ()
) -> tuple[str, str]:
    found = diagnosed(facts, heat, right)
    sentence = words.message(found.told)
    assert "\n" not in sentence
    return found.kind, sentence


def stuck(count: int) -> list[Fact]:
    """A stuck cell: a slot whose turn comes every eighth product."""
    return [one_bit(3, iteration=5 + 8 * turn) for turn in range(count)]


NAN = ring([(77, 0x4248, 0x7FC0)], nan=1)
INFINITE = ring([(77, 0x4248, 0x7F80)], infinite=1)
COLUMN = [5 + SIDE * row for row in range(SIDE)]
MOVED = ring([(n, 100 + n, 100 + (n ^ 4)) for n in range(64)])


RANDOM_AGREES = vram([(64, 81, 902), (96, 5, 80)], pattern="random_inverse", address_bits=[17])
RANDOM_DIFFERS = vram(
    [(8 * n, n * 7919, n * 7919 ^ 4) for n in range(1, 9)], words=9000, pattern="random_inverse"
)


@each(
    "kind, facts, told",
    [
        ("inputs", [INPUTS], ["operand a", "digest 00ff", "00fe"]),
        ("inputs", [INPUTS, {**INPUTS, "operand": "b"}], ["operand a", "b"]),
        ("inputs", [INPUTS, one_bit(3), units(17)], ["beside it 2 wrong products"]),
        (
            "repeatable",
            [WHOLE],
            ["1 element of 8192x8192x16384", "8192 rows", "whole numbers give", "[3, 4]", "driver"],
        ),
        ("repeatable", [{**WHOLE, "check": "normal", "nan": 3}], ["float64", "3 NaN"]),
        (
            "repeatable",
            [one_bit(9, slot=n, iteration=20 + n) for n in range(5)],
            ["each of 5 products"],
        ),
        ("unrepeatable", [AGAIN], ["digest 0a", "0b"]),
        ("unrepeatable", [AGAIN, one_bit(3)], ["1 products were reported wrong"]),
        ("memory bit", stuck(2), ["in 2 of 2 products", "bit 3", "iteration 5, 13"]),
        ("memory bit", [*stuck(3), units(17, iteration=6, slot=6)], ["in 3 of 4 products"]),
        (
            "one bit once",
            [one_bit(3)],
            ["XOR 0008 (bit 3)", "iteration 17", "run longer", "element [150, 5767]"],
        ),
        ("one bit once", [one_bit(14)], ["bit 14"]),
        (
            "scattered bits",
            [one_bit(3), one_bit(9, 5, slot=6, iteration=18)],
            ["each of 2 products"],
        ),
        ("not a number", [NAN], ["are NaN"]),
        ("not a number", [INFINITE], ["infinite"]),
        (
            "datapath",
            [units(17)],
            ["every 17th element", "one unit in the last place", "stride 17"],
        ),
        ("datapath", [units(16)], ["every 16th element", "low bits only"]),
        ("datapath", [units(1)], ["low bits only"]),
        ("datapath", [scrambled(range(0, 51000, 51))], ["no power of two", "every 51st element"]),
        ("datapath", [scrambled(range(0, 1000, 23))], ["every 23rd element"]),
        ("datapath", [scrambled(range(0, 1000, 13))], ["every 13th element"]),
        ("datapath", [scrambled(COLUMN)], ["whole column", "every 8192nd element"]),
        (
            "datapath",
            [ring([(n, n, n ^ 1 << 14) for n in sorted(SPREAD)])],
            ["Always the same bit", "bit 14"],
        ),
        (
            "datapath",
            [one_bit(9, slot=n, iteration=20 + 3 * n) for n in range(5)],
            ["5 of 13 products"],
        ),
        ("address line", [scrambled(range(0, 64000, 64))], ["power of two apart", "every 64th"]),
        ("address line", [MOVED], ["holds what byte", "address bit 3"]),
        ("many", [scrambled(sorted(SPREAD))], ["without a regular distance"]),
        ("many", [scrambled(range(500))], ["beside each other"]),
        ("many", [scrambled([99])], ["One element with several wrong bits"]),
        (
            "many",
            [one_bit(3), units(17, iteration=18, slot=6)],
            ["1 x one bit once", "1 x datapath"],
        ),
        (
            "copies",
            [COPIED, {**COPIED, "check": "copy_h2d", "component": "gpu0"}],
            ["24 words", "copy_p2p on gpu0->gpu1"],
        ),
        (
            "lost copies",
            [{**COPIED, "unwritten": 12}] * 2,
            ["The copy never arrived: 24 words still hold what lay there before"],
        ),
        (
            "copies",
            [COPIED, {**COPIED, "unwritten": 12}],
            ["Data changed", "24 words, 12 of which still hold what lay there"],
        ),
        (
            "copies",
            [{**COPIED, "words": 0, "first": []}],
            ["copies: 1 (copy_p2p on gpu0->gpu1). Usually"],
        ),
        ("one bit once", [vram([(64, 0, 4)])], ["One bit of one word", "byte 0x40"]),
        (
            "memory bit",
            [vram([(64, 0, 4)], number=n) for n in (1, 2, 3)],
            ["in 3 of 3 passes", "byte 0x40, bit 2"],
        ),
        ("address line", [vram([(64, 8, 9)], address_bits=[17])], ["address bit 17"]),
        ("address line", [vram([(8 * n, n, n ^ 4) for n in range(32)])], ["address bit 5"]),
        (
            "address line",
            [vram([(64, 8, 9)], address_bits=[17]), RANDOM_AGREES],
            ["address bit 17"],
        ),
        (
            "many",
            [vram([(8 * n, n, n ^ 4) for n in range(32)], address_bits=[5]), RANDOM_DIFFERS],
            ["Always bit 2"],
        ),
        (
            "memory bit",
            [*(vram([(64, 0, 4)], number=n) for n in (1, 2)), vram([(96, 0, 4)])],
            ["in 2 of 3 passes"],
        ),
        (
            "many",
            [vram([(8 * n, 0, 1 << n % 60) for n in range(32)], words=9000)],
            ["9000 wrong words"],
        ),
        (
            "many",
            [vram([(8 * n, n % 2, 1 - n % 2) for n in range(32)], words=9000)],
            ["Always bit 0"],
        ),
        # one such word alone is chance
        ("many", [vram([(64, 8, 9), (128, 9, 7)])], ["2 wrong words"]),
        (
            "many",
            [vram([(8 * n, 7, 3) for n in range(32)], words=9000)],
            ["Always bit 2", "data line"],
        ),
        ("unknown", [], ["nothing"]),
    ],
)
def test_each_kind_is_told_from_the_others(kind: str, facts: list[Fact], told: list[str]) -> None:
    found, sentence = seen(*facts)
    assert found == kind, sentence
    for part in told:
        assert part in sentence


def test_a_product_that_was_right_when_it_was_read_again() -> None:
    fact = {
        key: value for key, value in one_bit(3).items() if key not in given_wrong.described_keys()
    }
    kind, sentence = seen(fact)
    assert kind == "read back right"
    assert "1 of 67108864 elements" in sentence


def test_wide_elements() -> None:
    assert (
        seen(ring([(17 * n, 1 << 62 | n, (1 << 62 | n) + 1) for n in range(999)], width=8))[0]
        == "datapath"
    )
    kind, sentence = seen(ring([(5, 1 << 62, 0)], width=8))
    assert (kind, "XOR 4000000000000000 (bit 62)" in sentence) == ("one bit once", True)


@each(
    "facts, told",
    [
        (
            [INPUTS, WHOLE, AGAIN, one_bit(3), COPIED, COPIED, vram([(64, 0, 4)])],
            "; beside it 1 wrong products, 1 wrong products of later laps, 1 wrong first "
            "products, 2 wrong copies, "
            "1 wrong passes over the memory.",
        ),
        ([WHOLE, AGAIN], "; beside it 1 wrong products of later laps."),
        ([vram([(64, 0, 4)]), COPIED], "; beside it 1 wrong copies."),
        ([one_bit(3), one_bit(3, slot=6, iteration=30)], "not sampled. Usually"),
        ([INPUTS, INPUTS], "00fe now. Usually"),
        ([AGAIN], "later, 1 times. Usually"),
    ],
)
def test_what_else_was_wrong_is_counted(facts: list[Fact], told: str) -> None:
    assert told in seen(*facts)[1]


@pytest.mark.parametrize("others", [0, 1])
def test_what_cannot_be_read_is_told_by_its_number_where_there_are_several(others: int) -> None:
    told = (
        "wrong result 2 of 2 cannot be matched" if others else "the wrong result cannot be matched"
    )
    assert seen(*[one_bit(3)] * others, {"check": "ring"})[1].startswith(told)


# --- heat ---


def at(*temperatures: float | None) -> list[GpuHeat | None]:
    return [None if one is None else GpuHeat(one, 1500.0) for one in temperatures]


def right(*temperatures: float) -> list[GpuHeat]:
    return [GpuHeat(one, 1500.0) for one in temperatures]


HOT = [scrambled(sorted(SPREAD)[n : n + 50], iteration=100 + 7 * n, slot=n) for n in range(5)]
WARM_UP = right(*range(40, 90))


def test_wrong_only_when_hot() -> None:
    kind, sentence = seen(*HOT, heat=at(84, 83, 85, 84, 86), right=WARM_UP)
    assert kind == "thermal"
    assert "Wrong only at 83 degC and above" in sentence
    assert "43 of 50" in sentence
    assert "without a regular distance" in sentence
    assert "at 83 .. 86 degC and 1500 MHz" in sentence


@each(
    "heat, cooler",
    [
        (at(84, 83, 85, 84, 86), []),  # nobody knows of right ones
        (at(84, 83, None, 84, 86), WARM_UP),  # one of them may have been cool
        (at(84, 60, 85, 84, 86), right(*[40] * 2, *[85] * 30)),  # two cooler ones prove nothing
        (at(84, 83, 85, 84, 86), right(*[40] * 10, *[85] * 30)),  # hot by chance
        (at(84, 83, 85, 84, 86), right(*[81] * 50)),  # cooler by what a sensor rounds
        (at(84, 83, 85, 84, 41), WARM_UP),
        ([], WARM_UP),
    ],
)
def test_heat_is_not_blamed_without_proof(
    heat: list[GpuHeat | None], cooler: list[GpuHeat]
) -> None:
    assert seen(*HOT, heat=heat, right=cooler)[0] == "many"


def test_two_wrong_ones_and_lasting_faults_are_not_laid_to_heat() -> None:
    assert seen(*HOT[:2], heat=at(84, 85), right=WARM_UP)[0] == "many"
    assert seen(*stuck(4), heat=at(84, 85, 86, 84), right=WARM_UP)[0] == "memory bit"


def test_heat_that_was_not_sampled_is_said() -> None:
    assert "at a heat that was not sampled" in seen(one_bit(3))[1]
    assert "at 70 degC," not in seen(one_bit(3), heat=[GpuHeat(None, 1500.0)])[1]
    assert "at 1500 MHz" in seen(one_bit(3), heat=[GpuHeat(None, 1500.0)])[1]


# --- moments at which products were right ---


def test_right_products_lie_between_wrong_ones_of_a_lap() -> None:
    facts = [one_bit(3, iteration=10, made_s=1010.0), one_bit(4, 7, iteration=14, made_s=1014.0)]
    assert moments(facts) == (*(1000.0 + n for n in range(10)), 1011.0, 1012.0, 1013.0)


def test_nothing_is_known_between_laps_and_of_one_product_alone() -> None:
    later = [
        one_bit(3, iteration=10, lap=1, made_s=1010.0),
        one_bit(4, 7, iteration=13, lap=1, made_s=1013.0),
    ]
    assert moments(later) == (1011.0, 1012.0)
    assert moments([one_bit(3, iteration=10, lap=0), one_bit(3, iteration=19, lap=1)]) == ()
    assert moments([one_bit(3)]) == moments([]) == moments([{"check": "ring"}]) == ()
    assert moments([INPUTS]) == ()


def test_of_many_right_products_some_are_looked_at() -> None:
    facts = [
        one_bit(3, iteration=10**6, made_s=9000.0),
        one_bit(4, 7, iteration=10**6 + 100, made_s=9001.0),
    ]
    found = moments(facts)
    assert MOMENTS - 2 <= len(found) <= MOMENTS
    assert all(-1000.0 <= moment < 9001.0 for moment in found)


# --- what cannot be used ---

COMPLETE = [one_bit(3), INPUTS, AGAIN, WHOLE, COPIED, vram([(64, 0, 4)])]
OPTIONAL = {
    ("whole", "shape"),
    ("again", "shape"),
    ("again", "lap"),
    ("copy_p2p", "unwritten"),
}
DESCRIBED = given_wrong.described_keys()


@each("fact", COMPLETE, told=lambda fact: fact["check"])
def test_what_a_fact_does_not_tell_is_named(fact: Fact) -> None:
    for key in fact:
        without = {name: value for name, value in fact.items() if name != key}
        kind, sentence = seen(one_bit(5), without)
        needed = (fact["check"], key) not in OPTIONAL
        assert (kind == "unknown") == needed, key
        if needed:
            assert "wrong result 2 of 2 cannot be matched with a signature: " in sentence
            part = fact["check"] == "ring" and key in DESCRIBED
            assert ("tells only a part" if part else key) in sentence


STRANGE: list[Any] = [
    None,
    True,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    10**400,
    "",
    "x",
    [],
    [{}],
    {},
    {"a": 1},
    {"1": "x"},
]


@each("fact", COMPLETE, told=lambda fact: fact["check"])
def test_what_is_of_another_kind_is_never_an_exception(fact: Fact) -> None:
    for key in fact:
        for value in STRANGE:
            diagnosed([{**fact, key: value}], [None])
    for value in STRANGE:
        listed = fact.get("first")
        if isinstance(listed, list):
            for key in listed[0]:
                diagnosed([{**fact, "first": [{**listed[0], key: value}]}], [None])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.sampled_from(COMPLETE),
    st.dictionaries(
        st.sampled_from(sorted({key for fact in COMPLETE for key in fact})), json_values, max_size=4
    ),
    st.floats(),
)
def test_nothing_raises(fact: Fact, changes: dict[str, Any], degrees: float) -> None:
    found = diagnosed(
        [{**fact, **changes}, one_bit(2)],
        [GpuHeat(degrees), None, GpuHeat(1.0)],
        [GpuHeat(degrees)],
    )
    assert words.message(found.told)
    moments([{**fact, **changes}, one_bit(2)])


# --- words ---


def test_bits_in_words() -> None:
    assert positions(0b1011) == (0, 1, 3)
    assert worded(differing_bits(0x000B, 16)) == "XOR 000b (bits 0-1, 3)"
    assert worded(differing_bits(0x8, 16)) == "XOR 0008 (bit 3)"
    assert worded(differing_bits(0x5555, 16)) == "XOR 5555 (bits 0, 2, 4, 6, 8, 10 ...)"


def test_a_first_product_is_wrong_in_a_row_an_element_or_a_place_that_is_not_listed() -> None:
    told = seen(WHOLE)[1]
    assert "are not what exact whole numbers give, first element [3, 4]: 5.0 for 3.0" in told
    assert "first row 7." in seen({**WHOLE, "first": [{"index": [7]}]})[1]
    assert "first " not in seen({**WHOLE, "first": []})[1].partition("Usually")[0].removeprefix(
        "The first product"
    )


def test_a_copy_of_the_copy_load_is_of_no_kind_for_a_diagnosis() -> None:
    """What it counts is told; nothing is made of it."""
    wrong = WrongTransfer(
        component=Gpu(0), check="copy_own_h2d", copy=1, words=1, unwritten=0, first=()
    )
    found = diagnose([wrong], [None])
    assert found.kind == "unknown"
    assert "copy_own_h2d" in words.message(found.told)
    assert right_moments([wrong]) == ()
