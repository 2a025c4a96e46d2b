"""A wrong result as a load told of it, read strictly: what it must have and has not is named, nothing stands in for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from acceptance.judge import fact as told
from acceptance.judge.fact import Unclear as Unclear

# What a product has beside its counts, unless it was right when it was read again.
_DESCRIPTION = ("stride", "span", "xor_or", "xor_and", "bits", "first")


@dataclass(frozen=True, slots=True)
class Element:
    """One wrong element or word: where it lies in the tested memory (bytes), and its bits as they were due, as they came, and their XOR."""

    address: int
    index: tuple[int, ...]
    expected: int
    got: int
    xor: int


@dataclass(frozen=True, slots=True)
class Ring:
    """One product of which elements differ from what all of them must be; `made_s` and `found_s` are seconds since boot.

    `stride` is the usual distance of its wrong elements in elements, `width` the bits of one, `bits` how often each bit differs among the
    first of them, `columns` the length of a row of the result where its shape tells it. One that was right when it was read again is not
    `described`: it has no places and no bits.
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
    first: tuple[Element, ...]
    columns: int | None

    @property
    def described(self) -> bool:
        """Whether its wrong elements were seen again, with their places and bits."""
        return bool(self.first)


@dataclass(frozen=True, slots=True)
class Inputs:
    """An operand that changed while products were made: its digest before and after."""

    operand: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Again:
    """The first product of a later lap, of which the digest is not that of the first lap's."""

    shape: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A first product that is not what float64 or whole numbers give; `check` is "normal" or "whole"."""

    check: str
    shape: str
    rows: int
    elements: int
    nan: int
    infinite: int
    first: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy that arrived wrong; `check` names its way, such as "copy_h2d".

    `unwritten` are those of its wrong words that still hold what lay there before the copy; None
    where the load did not look.
    """

    check: str
    component: str
    words: int
    unwritten: int | None
    first: str


@dataclass(frozen=True, slots=True)
class Vram:
    """Words that the test of the memory found wrong in one pass; `address_bits` are the address lines where it could tell them."""

    pattern: str
    number: int
    words: int
    found_s: float
    xor_or: int
    xor_and: int
    bits: Mapping[int, int]
    first: tuple[Element, ...]
    address_bits: tuple[int, ...]


Wrong = Ring | Inputs | Again | Reference | Copied | Vram


def read(fact: Mapping[str, Any]) -> Wrong:
    """One wrong result. Raises Unclear where it is of no known kind, or has not all that its kind must have."""
    check = told.text(fact, "check")
    if check == "ring":
        return _ring(fact)
    if check == "inputs":
        return Inputs(told.text(fact, "operand"), told.text(fact, "expected"), told.text(fact, "got"))
    if check == "again":
        return Again(told.text(fact, "shape"), told.text(fact, "expected"), told.text(fact, "got"))
    if check in ("normal", "whole"):
        rows, elements = told.count(fact, "rows"), told.count(fact, "elements")
        nan, infinite = told.count(fact, "nan"), told.count(fact, "infinite")
        return Reference(check, told.text(fact, "shape"), rows, elements, nan, infinite, _place(fact))
    if check == "vram":
        return _vram(fact)
    if check.startswith("copy_"):
        unwritten = told.count(fact, "unwritten") if "unwritten" in fact else None
        return Copied(check, told.text(fact, "component"), told.count(fact, "words"), unwritten, _place(fact))
    raise Unclear(f"its check is {check!r}, which is none that is known here")


def _place(fact: Mapping[str, Any]) -> str:
    """Where the first of its wrong elements, rows or words is, and what stood there for what; empty where none is listed."""
    listed = told.listed(fact, "first")
    if not listed:
        return ""
    first = listed[0]
    if not isinstance(first, Mapping):
        raise Unclear("an entry of its first is no object")
    if "word" in first:
        place = f"word {told.count(first, 'word')}"
    else:
        index = told.listed(first, "index")
        if not index or not all(map(told.whole, index)):
            raise Unclear("an entry of its first has an index that is not whole numbers")
        place = f"row {index[0]}" if len(index) == 1 else f"element {list(index)}"
    if "expected" not in first:
        return place
    return f"{place}: {told.text(first, 'got')} for {told.text(first, 'expected')}"


def _ring(fact: Mapping[str, Any]) -> Ring:
    if not any(key in fact for key in _DESCRIPTION):
        unseen = {"stride": None, "span": [0, 0], "xor_or": "0", "xor_and": "0", "bits": {"0": 0}}
        fact = {**fact, **unseen}
        first: tuple[Element, ...] = ()
    else:
        first = _elements(fact)
    span = told.listed(fact, "span")
    if len(span) != 2 or not all(told.whole(one) for one in span):
        raise Unclear("its span is not two element numbers")
    stride = told.value(fact, "stride")
    if stride is not None and not (told.whole(stride) and stride > 0):
        raise Unclear("its stride is no whole number above 0")
    xor_or = told.text(fact, "xor_or")
    of = told.count(fact, "of")
    return Ring(
        iteration=told.count(fact, "iteration"),
        lap=told.count(fact, "lap"),
        slot=told.count(fact, "slot"),
        made_s=told.seconds(fact, "made_s"),
        found_s=told.seconds(fact, "found_s"),
        elements=told.count(fact, "elements"),
        of=of,
        nan=told.count(fact, "nan"),
        infinite=told.count(fact, "infinite"),
        stride=stride,
        span=(span[0], span[1]),
        width=4 * len(xor_or),
        xor_or=told.bits_of(fact, "xor_or"),
        xor_and=told.bits_of(fact, "xor_and"),
        bits=_bits(fact),
        first=first,
        columns=_columns(told.text(fact, "shape"), of),
    )


def _vram(fact: Mapping[str, Any]) -> Vram:
    lines = told.listed(fact, "address_bits") if "address_bits" in fact else []
    if not all(told.whole(one) for one in lines):
        raise Unclear("its address_bits are not whole numbers")
    return Vram(
        pattern=told.text(fact, "pattern"),
        number=told.count(fact, "pass"),
        words=told.count(fact, "words"),
        found_s=told.seconds(fact, "found_s"),
        xor_or=told.bits_of(fact, "xor_or"),
        xor_and=told.bits_of(fact, "xor_and"),
        bits=_bits(fact),
        first=_elements(fact),
        address_bits=tuple(lines),
    )


def _columns(shape: str, of: int) -> int | None:
    """The length of a row of a result of this shape (rows x columns x depth); None where the shape does not say it."""
    sides = shape.split("x")
    if len(sides) == 3 and all(side.isdecimal() for side in sides) and int(sides[0]) * int(sides[1]) == of:
        return int(sides[1])
    return None


def _elements(fact: Mapping[str, Any]) -> tuple[Element, ...]:
    found = []
    for one in told.listed(fact, "first"):
        if not isinstance(one, Mapping):
            raise Unclear("an entry of its first is no object")
        index = one.get("index", [])
        if not isinstance(index, list) or not all(told.whole(part) for part in index):
            raise Unclear("an entry of its first has an index that is not whole numbers")
        values = [told.bits_of(one, name) for name in ("expected", "got", "xor")]
        found.append(Element(told.count(one, "address"), tuple(index), *values))
    if not found:
        raise Unclear("its first is empty")
    return tuple(found)


def _bits(fact: Mapping[str, Any]) -> dict[int, int]:
    bits = told.value(fact, "bits")
    if not isinstance(bits, Mapping) or not bits:
        raise Unclear("its bits are no counts by bit")
    if not all(isinstance(bit, str) and bit.isdecimal() and told.whole(count) for bit, count in bits.items()):
        raise Unclear("its bits are no counts by bit")
    return {int(bit): count for bit, count in bits.items()}
