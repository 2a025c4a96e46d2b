"""What a load told of a wrong result is read strictly: what is missing or of another kind is
refused by its name, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cases import each

from acceptance.diagnosis import miscompare

Read = Callable[[Mapping[str, Any], str], object]


@each(
    "read, given, found",
    [
        (miscompare.value, None, None),
        (miscompare.text, "ring", "ring"),
        (miscompare.bits_of, "00fF", 255),
        (miscompare.bits_of, "f" * 32, (1 << 128) - 1),
        (miscompare.count, 0, 0),
        (miscompare.count, (1 << 64) - 1, (1 << 64) - 1),
        (miscompare.seconds, -3, -3.0),
        (miscompare.seconds, 1012.5, 1012.5),
        (miscompare.seconds, 1e12 - 1, 1e12 - 1),
        (miscompare.seconds, 1 - 1e12, 1 - 1e12),
        (miscompare.listed_in, [], []),
        (miscompare.listed_in, (1,), (1,)),
    ],
)
def test_what_is_as_it_must_be_is_taken(read: Read, given: object, found: object) -> None:
    assert read({"key": given}, "key") == found


@each(
    "read, given, told",
    [
        *((miscompare.text, wrong, "its key is no text") for wrong in ("", None, 7, ["a"])),
        *(
            (miscompare.bits_of, wrong, "its key is not in hexadecimal digits")
            for wrong in ("0x1", "g", "f" * 33, "1\n")
        ),
        (miscompare.bits_of, 1, "its key is no text"),
        *(
            (miscompare.count, wrong, "its key is no whole number")
            for wrong in (-1, 1 << 64, 1.0, True, "1", None)
        ),
        *(
            (miscompare.seconds, wrong, "its key is no finite number of seconds")
            for wrong in (math.nan, math.inf, -math.inf, 1e12, -1e12, 10**400, True, "1", None)
        ),
        *((miscompare.listed_in, wrong, "its key is no list") for wrong in ("abc", {}, None, 1)),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(read: Read, given: object, told: str) -> None:
    with pytest.raises(miscompare.MiscompareError) as caught:
        read({"key": given}, "key")
    assert str(caught.value) == told


@each(
    "read",
    [
        miscompare.value,
        miscompare.text,
        miscompare.bits_of,
        miscompare.count,
        miscompare.seconds,
        miscompare.listed_in,
    ],
)
def test_what_is_missing_is_named(read: Read) -> None:
    with pytest.raises(miscompare.MiscompareError, match=r"^it does not tell its key$"):
        read({"another": 1}, "key")
