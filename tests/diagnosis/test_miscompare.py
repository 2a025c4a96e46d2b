"""A wrong result is read strictly: as a load prints it, or refused by the name
of what is not as it must be.
"""

from __future__ import annotations

from typing import Any

import pytest
from cases import each
from wrong_results import COPIED, WHOLE, Fact, described_keys, one_bit, ring, vram

from acceptance.diagnosis import miscompare
from acceptance.diagnosis.miscompare import MiscompareError, WrongCopy, WrongProduct


def read_ring(fact: Fact) -> WrongProduct:
    found = miscompare.read(fact)
    assert isinstance(found, WrongProduct)
    return found


def test_a_product_is_read_with_its_places_and_bits() -> None:
    found = read_ring(ring([(3, 0x10, 0x11), (8195, 0x20, 0x23)], iteration=9, slot=2, nan=1))
    assert (found.iteration, found.slot, found.lap, found.elements, found.of, found.nan) == (
        9,
        2,
        0,
        2,
        8192**2,
        1,
    )
    assert (found.stride, found.span, found.width, found.columns) == (8192, (3, 8195), 16, 8192)
    assert (found.xor_or, found.xor_and, found.bits) == (3, 1, {0: 2, 1: 1})
    assert [(one.index, one.expected, one.got, one.xor) for one in found.first] == [
        ((0, 3), 0x10, 0x11, 1),
        ((1, 3), 0x20, 0x23, 3),
    ]
    assert found.described


def test_one_that_was_right_when_it_was_read_again_has_no_places_and_no_bits() -> None:
    found = read_ring(
        {key: value for key, value in one_bit(3).items() if key not in described_keys()}
    )
    assert not found.described
    assert (found.stride, found.span, found.xor_or, found.xor_and, found.bits) == (
        None,
        (0, 0),
        0,
        0,
        {0: 0},
    )


@each("key", sorted(described_keys()))
def test_a_product_that_tells_a_part_of_its_places_is_not_taken_for_one_that_was_right(
    key: str,
) -> None:
    gone = described_keys() - {key}
    with pytest.raises(MiscompareError, match="it does not tell its "):
        miscompare.read({name: value for name, value in one_bit(3).items() if name not in gone})


@each(
    "shape, of, columns",
    [
        ("4096x8192x16384", 4096 * 8192, 8192),
        ("4096x8192x16384", 8192 * 8192, None),
        ("4096x8192", 4096 * 8192, None),
        ("ax8192x16384", 8192, None),
        ("by rows", 8192, None),
    ],
)
def test_the_length_of_a_row_is_what_the_shape_says_where_it_fits(
    shape: str, of: int, columns: int | None
) -> None:
    assert read_ring({**one_bit(3), "shape": shape, "of": of}).columns == columns


@each(
    "fact, told",
    [
        (
            {**COPIED, "check": "moved_p2p"},
            "its check is 'moved_p2p', which is none that is known here",
        ),
        (
            {**WHOLE, "first": [{"index": [1, 1.5]}]},
            "an entry of its first has an index that is not whole numbers",
        ),
        ({**one_bit(3), "span": [1]}, "its span is not two element numbers"),
        ({**one_bit(3), "span": [1, -1]}, "its span is not two element numbers"),
        ({**one_bit(3), "span": [1, 2, 3]}, "its span is not two element numbers"),
        ({**one_bit(3), "stride": 0}, "its stride is no whole number above 0"),
        ({**one_bit(3), "stride": 1.5}, "its stride is no whole number above 0"),
        ({**one_bit(3), "bits": {"0": 1, "x": 2}}, "its bits are no counts by bit"),
        ({**one_bit(3), "bits": {"0": 1, "1": -2}}, "its bits are no counts by bit"),
        ({**one_bit(3), "bits": {}}, "its bits are no counts by bit"),
        ({**one_bit(3), "first": []}, "its first is empty"),
        ({**vram([(0, 1, 2)]), "address_bits": [3, "4"]}, "its address_bits are not whole numbers"),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_by_name(fact: dict[str, Any], told: str) -> None:
    with pytest.raises(MiscompareError) as caught:
        miscompare.read(fact)
    assert str(caught.value) == told


def test_a_copy_says_which_way_it_went() -> None:
    assert miscompare.read(COPIED) == WrongCopy(
        "copy_p2p", "gpu0->gpu1", 12, 0, "word 3: 01 for 00"
    )


def test_an_older_load_does_not_say_what_was_never_written() -> None:
    older = {name: value for name, value in COPIED.items() if name != "unwritten"}
    assert miscompare.read(older) == WrongCopy(
        "copy_p2p", "gpu0->gpu1", 12, None, "word 3: 01 for 00"
    )
