"""A wrong result is read strictly: as a load prints it, or refused by the name of what is not as it
must be. What is read is printed again as it was.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from cases import each
from wrong_results import (
    AGAIN,
    ARRAY,
    COLLECTIVE,
    COPIED,
    CORE_REPEATED,
    DIGESTS,
    FAILED,
    FILE,
    INEXACT,
    INPUTS,
    LAYER,
    LAYER_REPEATED,
    REMADE,
    REPEATED,
    ROWS,
    RUN,
    TRAINED,
    TRANSFERRED,
    UNEQUAL,
    VECTOR,
    WHOLE,
    Fact,
    described_keys,
    one_bit,
    ring,
    vram,
)

from acceptance.core.message import Message
from acceptance.core.parts import parse
from acceptance.loads.miscompare import (
    Miscompare,
    UnreadMiscompare,
    WrongProduct,
    component_of,
    details,
    dtype_of,
    read,
    read_or_keep,
    why,
)
from acceptance.wording import words

RECORDINGS = Path(__file__).parent.parent.parent / "fixtures" / "recordings"

PATHS = [TRANSFERRED, COLLECTIVE]
OTHERS = [
    REMADE,
    REPEATED,
    CORE_REPEATED,
    *PATHS,
    UNEQUAL,
    VECTOR,
    INEXACT,
    ROWS,
    DIGESTS,
    RUN,
    TRAINED,
    ARRAY,
    LAYER,
    LAYER_REPEATED,
    FILE,
    FAILED,
    TRAINED,
]
RIGHT_AGAIN = {key: value for key, value in one_bit(3).items() if key not in described_keys()}
OLDER_COPY = {name: value for name, value in COPIED.items() if name != "unwritten"}
ALL = [one_bit(3), RIGHT_AGAIN, INPUTS, AGAIN, WHOLE, COPIED, OLDER_COPY, vram([(64, 0, 4)])]


@each("fact", [*ALL, *OTHERS], told=lambda fact: fact["check"])
def test_what_is_read_is_printed_as_it_was(fact: Fact) -> None:
    found = read(fact)
    assert details(found) == fact
    assert details(found).keys() == fact.keys()
    assert component_of(found) == (parse(fact["component"]) if "component" in fact else None)
    assert dtype_of(found) == fact.get("dtype")


def test_every_kind_is_among_them() -> None:
    assert {type(read(fact)) for fact in [*ALL, *OTHERS]} == set(get_args(Miscompare))


def test_recorded_lines_are_printed_as_they_were() -> None:
    """Whole lines: the notes and events of a run quote them, key by key."""
    count = {"burn": 0, "h100/loads": 0}
    for folder in count:
        for path in sorted((RECORDINGS / folder).glob("*.txt")):
            for line in path.read_text().splitlines():
                if line.startswith('{"miscompare"'):
                    given = json.loads(line)["miscompare"]
                    assert json.dumps(details(read(given))) == json.dumps(given)
                    count[folder] += 1
    assert count["burn"] > 100
    assert count["h100/loads"] == 26


def read_ring(fact: Fact) -> WrongProduct:
    found = read(fact)
    assert isinstance(found, WrongProduct)
    return found


def test_a_product_is_read_with_its_places_and_bits() -> None:
    found = read_ring(ring([(3, 0x10, 0x11), (8195, 0x20, 0x23)], iteration=9, slot=2, nan=1))
    assert (found.distance, found.span, found.width, found.columns) == (8192, (3, 8195), 16, 8192)
    assert (found.differing, found.bits) == (3, {0: 2, 1: 1})
    assert [(one.index, one.expected_bits, one.got_bits, one.xor_bits) for one in found.first] == [
        ((0, 3), 0x10, 0x11, 1),
        ((1, 3), 0x20, 0x23, 3),
    ]
    assert found.described


def test_one_that_was_right_when_it_was_read_again_has_no_places_and_no_bits() -> None:
    found = read_ring(RIGHT_AGAIN)
    assert not found.described
    assert (found.distance, found.span, found.differing, found.width) == (None, None, 0, 0)


@each("key", sorted(described_keys()))
def test_a_product_that_tells_a_part_of_its_places_is_not_taken_for_one_that_was_right(
    key: str,
) -> None:
    for gone in ({key}, described_keys() - {key}):
        with pytest.raises(ValueError, match="described_in_part"):
            read({name: value for name, value in one_bit(3).items() if name not in gone})


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
        ({**COPIED, "check": "moved"}, "its check is 'moved', which is none that is known here"),
        ({**COPIED, "check": ["ring"]}, "its check is ['ring'], which is none that is known here"),
        ({"component": "gpu0"}, "its check is None, which is none that is known here"),
        ({**INPUTS, "more": 1}, "Object contains unknown field `more`"),
        ({**INPUTS, "dtype": "f128"}, "Invalid enum value 'f128' - at `$.dtype`"),
        ({**INPUTS, "operand": ""}, "Expected `str` of length >= 1 - at `$.operand`"),
        ({**WHOLE, "first": [{"index": [1.5]}]}, "Expected `int`, got `float` - at "),
        ({**WHOLE, "first": [{"index": []}]}, "Expected `array` of length >= 1"),
        ({**WHOLE, "nan": -1}, "Expected `int` >= 0 - at `$.nan`"),
        ({**WHOLE, "nan": True}, "Expected `int`, got `bool` - at `$.nan`"),
        ({**WHOLE, "nan": 1 << 63}, "Expected `int` <= 9223372036854775807 - at `$.nan`"),
        ({**one_bit(3), "span": [1]}, "Expected `array` of length 2, got 1 - at `$.span`"),
        ({**one_bit(3), "stride": 0}, "Expected `int` >= 1 - at `$.stride`"),
        ({**one_bit(3), "made_s": 1e12}, "Expected `float` < 1000000000000.0 - at `$.made_s`"),
        ({**one_bit(3), "made_s": float("nan")}, "Expected `float` > -1000000000000.0"),
        ({**one_bit(3), "made_s": 10**400}, "Number out of range - at `$.made_s`"),
        ({**one_bit(3), "xor_or": "0x1"}, "Expected `str` matching regex"),
        ({**one_bit(3), "xor_or": "1\n"}, "Expected `str` matching regex"),
        ({**one_bit(3), "xor_or": "f" * 33}, "Expected `str` matching regex"),
        ({**one_bit(3), "bits": {"0": 1, "x": 2}}, "Expected `int`, got `str` - at `key`"),
        ({**one_bit(3), "bits": {"0": 1, "1": -2}}, "Expected `int` >= 0 - at `$.bits[...]`"),
        ({**one_bit(3), "first": []}, "it tells only a part of its places and bits"),
        ({**FILE, "words": 0}, "Expected `int` >= 1 - at `$.words`"),
        ({**FILE, "check": "file"}, "Object contains unknown field `pass`"),
        ({**FILE, "pass": -1}, "Expected `int` >= 0 - at `$.pass`"),
        ({**FAILED, "error": ""}, "Expected `str` of length >= 1 - at `$.error`"),
        ({**vram([(0, 1, 2)]), "first": []}, "Expected `array` of length >= 1 - at `$.first`"),
        ({**vram([(0, 1, 2)]), "bits": {}}, "Expected `object` of length >= 1 - at `$.bits`"),
        ({**vram([(0, 1, 2)]), "address_bits": ["3"]}, "Expected `int`, got `str` - at "),
    ],
)
def test_what_is_not_as_it_must_be_is_refused_by_name(fact: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read(fact)
    assert words.text(why(caught.value)).startswith(told)


def test_what_cannot_be_read_is_kept_as_it_was_given() -> None:
    kept = read_or_keep({"check": "moved", "größe": [1.5]})
    assert isinstance(kept, UnreadMiscompare)
    assert details(kept) == {"check": "moved", "größe": [1.5]}
    assert kept.reason == Message("check_unknown", {"check": "'moved'"})
    assert (component_of(kept), dtype_of(kept)) == (None, None)
    assert read_or_keep(COPIED) == read(COPIED)
