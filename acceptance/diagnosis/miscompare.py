"""Strict reader of a wrong result as a load reported it. Pure.

A missing key is named in the error, never defaulted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_HEX = re.compile(r"[0-9a-fA-F]{1,32}")
_FOREVER_S = 1e12


class MiscompareError(ValueError):
    """A load's report of a wrong result cannot be used; the message names the key."""


def value(fact: Mapping[str, Any], key: str) -> Any:
    """The value of a key.

    Raises MiscompareError, naming the key, as do all of these functions.
    """
    if key not in fact:
        raise MiscompareError(f"it does not tell its {key}")
    return fact[key]


def text(fact: Mapping[str, Any], key: str) -> str:
    """A text, not empty."""
    found = value(fact, key)
    if not isinstance(found, str) or not found:
        raise MiscompareError(f"its {key} is no text")
    return found


def bits_of(fact: Mapping[str, Any], key: str) -> int:
    """The whole number that a text of hexadecimal digits gives."""
    found = text(fact, key)
    if not _HEX.fullmatch(found):
        raise MiscompareError(f"its {key} is not in hexadecimal digits")
    return int(found, 16)


def is_whole_number(value: object) -> bool:
    """Whether a value is a whole number, 0 or above, that fits 64 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def count(fact: Mapping[str, Any], key: str) -> int:
    """A whole number, 0 or above."""
    found = value(fact, key)
    if not is_whole_number(found):
        raise MiscompareError(f"its {key} is no whole number")
    assert isinstance(found, int)
    return found


def seconds(fact: Mapping[str, Any], key: str) -> float:
    """A finite number of seconds."""
    found = value(fact, key)
    if (
        isinstance(found, bool)
        or not isinstance(found, int | float)
        or not -_FOREVER_S < found < _FOREVER_S
    ):
        raise MiscompareError(f"its {key} is no finite number of seconds")
    return float(found)


def listed_in(fact: Mapping[str, Any], key: str) -> Sequence[Any]:
    """A list."""
    found = value(fact, key)
    if not isinstance(found, list | tuple):
        raise MiscompareError(f"its {key} is no list")
    return found


# Further keys of a product, absent where it was right when it was read again.
_DESCRIPTION = ("stride", "span", "xor_or", "xor_and", "bits", "first")


@dataclass(frozen=True, slots=True)
class WrongElement:
    """One wrong element or word: its address in the tested memory (bytes), and its bits.

    `expected` and `got` are the bits as they should be and as they are, `xor` is their XOR.
    """

    address: int
    index: tuple[int, ...]
    expected: int
    got: int
    xor: int


@dataclass(frozen=True, slots=True)
class WrongProduct:
    """One product with elements that differ from the expected result.

    `made_s` and `found_s` are seconds since boot. `stride` is the usual distance of its wrong
    elements in elements, `width` the number of bits of one element, `bits` how often each bit
    differs among the first of them, `columns` the length of a row of the result where its shape
    gives it. A product that was right when it was read again is not `described`: it has no places
    and no bits.
    """

    iteration: int
    lap: int
    slot: int
    made_s: float
    found_s: float
    elements: int
    of: int
    nan: int
    infinite: int
    stride: int | None
    span: tuple[int, int]
    width: int
    xor_or: int
    xor_and: int
    bits: Mapping[int, int]
    first: tuple[WrongElement, ...]
    columns: int | None

    @property
    def described(self) -> bool:
        """Whether its wrong elements were seen again, with their places and bits."""
        return bool(self.first)


@dataclass(frozen=True, slots=True)
class ChangedInputs:
    """An operand that changed while products were made: its digest before and after."""

    operand: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class LapMismatch:
    """The first product of a later lap, with another digest than in the first lap."""

    shape: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class WrongReference:
    """A first product that differs from float64 or exact whole numbers.

    `check` is "normal" or "whole".
    """

    check: str
    shape: str
    rows: int
    elements: int
    nan: int
    infinite: int
    first: str


@dataclass(frozen=True, slots=True)
class WrongCopy:
    """A copy with wrong data; `check` names its path, such as "copy_h2d".

    `unwritten` counts the wrong words that still hold their value from before the copy; None where
    the load did not test that.
    """

    check: str
    component: str
    words: int
    unwritten: int | None
    first: str


@dataclass(frozen=True, slots=True)
class WrongMemory:
    """Words that one pass of the memory test found wrong.

    `address_bits` are the address lines at fault, where the test could determine them.
    """

    pattern: str
    number: int
    words: int
    found_s: float
    xor_or: int
    xor_and: int
    bits: Mapping[int, int]
    first: tuple[WrongElement, ...]
    address_bits: tuple[int, ...]


Miscompare = WrongProduct | ChangedInputs | LapMismatch | WrongReference | WrongCopy | WrongMemory


def read(fact: Mapping[str, Any]) -> Miscompare:
    """One wrong result.

    Raises MiscompareError where its kind is unknown, or a key of its kind is missing.
    """
    check = text(fact, "check")
    if check == "ring":
        return _ring(fact)
    if check == "inputs":
        return ChangedInputs(text(fact, "operand"), text(fact, "expected"), text(fact, "got"))
    if check == "again":
        return LapMismatch(text(fact, "shape"), text(fact, "expected"), text(fact, "got"))
    if check in ("normal", "whole"):
        rows, elements = count(fact, "rows"), count(fact, "elements")
        nan, infinite = count(fact, "nan"), count(fact, "infinite")
        return WrongReference(
            check, text(fact, "shape"), rows, elements, nan, infinite, _place(fact)
        )
    if check == "vram":
        return _vram(fact)
    if check.startswith("copy_"):
        unwritten = count(fact, "unwritten") if "unwritten" in fact else None
        return WrongCopy(
            check, text(fact, "component"), count(fact, "words"), unwritten, _place(fact)
        )
    raise MiscompareError(f"its check is {check!r}, which is none that is known here")


def _place(fact: Mapping[str, Any]) -> str:
    """The first wrong element, row or word, and its value; empty where none is listed."""
    listed = listed_in(fact, "first")
    if not listed:
        return ""
    first = listed[0]
    if not isinstance(first, Mapping):
        raise MiscompareError("an entry of its first is no object")
    if "word" in first:
        place = f"word {count(first, 'word')}"
    else:
        index = listed_in(first, "index")
        if not index or not all(map(is_whole_number, index)):
            raise MiscompareError("an entry of its first has an index that is not whole numbers")
        place = f"row {index[0]}" if len(index) == 1 else f"element {list(index)}"
    if "expected" not in first:
        return place
    return f"{place}: {text(first, 'got')} for {text(first, 'expected')}"


def _ring(fact: Mapping[str, Any]) -> WrongProduct:
    if not any(key in fact for key in _DESCRIPTION):
        unseen = {"stride": None, "span": [0, 0], "xor_or": "0", "xor_and": "0", "bits": {"0": 0}}
        fact = {**fact, **unseen}
        first: tuple[WrongElement, ...] = ()
    else:
        first = _elements(fact)
    span = listed_in(fact, "span")
    if len(span) != 2 or not all(is_whole_number(one) for one in span):
        raise MiscompareError("its span is not two element numbers")
    stride = value(fact, "stride")
    if stride is not None and not (is_whole_number(stride) and stride > 0):
        raise MiscompareError("its stride is no whole number above 0")
    xor_or = text(fact, "xor_or")
    of = count(fact, "of")
    return WrongProduct(
        iteration=count(fact, "iteration"),
        lap=count(fact, "lap"),
        slot=count(fact, "slot"),
        made_s=seconds(fact, "made_s"),
        found_s=seconds(fact, "found_s"),
        elements=count(fact, "elements"),
        of=of,
        nan=count(fact, "nan"),
        infinite=count(fact, "infinite"),
        stride=stride,
        span=(span[0], span[1]),
        width=4 * len(xor_or),
        xor_or=bits_of(fact, "xor_or"),
        xor_and=bits_of(fact, "xor_and"),
        bits=_bits(fact),
        first=first,
        columns=_columns(text(fact, "shape"), of),
    )


def _vram(fact: Mapping[str, Any]) -> WrongMemory:
    lines = listed_in(fact, "address_bits") if "address_bits" in fact else []
    if not all(is_whole_number(one) for one in lines):
        raise MiscompareError("its address_bits are not whole numbers")
    return WrongMemory(
        pattern=text(fact, "pattern"),
        number=count(fact, "pass"),
        words=count(fact, "words"),
        found_s=seconds(fact, "found_s"),
        xor_or=bits_of(fact, "xor_or"),
        xor_and=bits_of(fact, "xor_and"),
        bits=_bits(fact),
        first=_elements(fact),
        address_bits=tuple(lines),
    )


def _columns(shape: str, of: int) -> int | None:
    """The length of a row of a result of this shape (rows x columns x depth).

    None where the shape does not give it.
    """
    sides = shape.split("x")
    if (
        len(sides) == 3
        and all(side.isdecimal() for side in sides)
        and int(sides[0]) * int(sides[1]) == of
    ):
        return int(sides[1])
    return None


def _elements(fact: Mapping[str, Any]) -> tuple[WrongElement, ...]:
    found = []
    for one in listed_in(fact, "first"):
        if not isinstance(one, Mapping):
            raise MiscompareError("an entry of its first is no object")
        index = one.get("index", [])
        if not isinstance(index, list) or not all(is_whole_number(part) for part in index):
            raise MiscompareError("an entry of its first has an index that is not whole numbers")
        values = [bits_of(one, name) for name in ("expected", "got", "xor")]
        found.append(WrongElement(count(one, "address"), tuple(index), *values))
    if not found:
        raise MiscompareError("its first is empty")
    return tuple(found)


def _bits(fact: Mapping[str, Any]) -> dict[int, int]:
    bits = value(fact, "bits")
    if not isinstance(bits, Mapping) or not bits:
        raise MiscompareError("its bits are no counts by bit")
    if not all(
        isinstance(bit, str) and bit.isdecimal() and is_whole_number(count)
        for bit, count in bits.items()
    ):
        raise MiscompareError("its bits are no counts by bit")
    return {int(bit): count for bit, count in bits.items()}
