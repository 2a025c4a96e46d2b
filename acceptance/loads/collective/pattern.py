"""The numbers that the ranks send, what must stand at each place of a destination, and how it
differs.

Exact in any order: all numbers of n ranks are whole, from 1 to m = 2**p // n, where whole numbers
up to 2**p are exact in the format (`EXACT`). So every sum of some of the ranks' numbers at a place
is a whole number up to 2**p, and every order and grouping gives the same bits. For int32 it is
2**31 - 1 instead, so that nothing wraps.

Different: the numbers up to m are cut into n equal ranges. At each place and turn every rank has a
number of another range: which one is turned round by a hash of turn and place, and where in the
range is a hash of turn, place and rank. So at one place no two ranks have the same number: a sum in
which one rank is missing or stands for another, and a block of another rank, are wrong in every
element. A shift of places and an old turn are wrong in nearly every element. Two numbers in a range
are the least, so bfloat16 is for at most 11 ranks.

Buffers are spoiled with a number below every right one. A sum that is made in place begins as the
rank's own numbers, which no sum of all ranks equals.

The hash is SplitMix64 in signed arithmetic, which has the same bits. Places are arrays of int64, of
numpy or torch alike; nothing here knows which.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from acceptance.loads.collective.operation import Operation
from acceptance.loads.miscompare import ElementType, WrongValue

Array = Any  # numpy.ndarray or torch.Tensor
ELEMENT_TYPES: tuple[ElementType, ...] = get_args(ElementType)
ITEMSIZE: Mapping[ElementType, int] = {"f32": 4, "bf16": 2, "f16": 2, "i32": 4}
# The largest whole number up to which all are exact: 2 to the bits of the significand.
EXACT: Mapping[ElementType, int] = {"f32": 2**24, "bf16": 2**8, "f16": 2**11, "i32": 2**31 - 1}
# As kernels/collective.cu numbers them.
FORMATS: Mapping[ElementType, int] = {"f32": 0, "i32": 1, "bf16": 2, "f16": 3}
SPOILED = -1
MOST_RANKS = 64
LISTED = 4  # wrong elements listed in a report; all are counted

_TURN_SHIFT = 36  # a turn has 2**36 places, 128 GiB of two bytes
_TURNS = 1 << (62 - _TURN_SHIFT)
_LOW = (1 << 31) - 1
# Even, so that a multiple plus 1 is odd; 64 of them stay below 2**63.
_OF_RANK = 0x9E3779B97F4A
_WRAP = 1 << 64
_STEP, _FIRST, _SECOND = (
    x - _WRAP for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def mixed(numbers: Array) -> Array:
    """A 64-bit hash of each number: `exact_product.mixed`, in signed arithmetic."""
    x = numbers * _STEP
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def _shifted(x: Array, bits: int) -> Array:
    """x >> bits, as if x were unsigned."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


@dataclass(frozen=True, slots=True)
class Rule:
    """Which numbers stand at the places of a buffer.

    With `total` the sums over all ranks; else those of `rank`, or, where `share` is above 0, of the
    rank to whose share a place belongs, at the place in the share. `offset` is added to the place.
    `kernels/collective.cu` has the same.
    """

    total: bool = False
    rank: int = 0
    share: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of all ranks in one format.

    Raises ValueError where the format has too few exact numbers for so many ranks.
    """

    dtype: ElementType
    ranks: int

    def __post_init__(self) -> None:
        if not 2 <= self.ranks <= MOST_RANKS or self.width < 2:
            raise ValueError(f"{self.dtype} has no exact sums of {self.ranks} ranks")

    @property
    def largest(self) -> int:
        """The largest number that a rank may have: n of it are still exact."""
        return EXACT[self.dtype] // self.ranks

    @property
    def width(self) -> int:
        """How many numbers a range has."""
        return self.largest // self.ranks

    def own(self, rank: int | Array, turn: int, places: Array) -> Array:
        """The numbers of a rank at these places, in a turn below 2**26.

        `rank` may be an array, with a rank for each place.
        """
        return self._of(rank, self._hash(turn, places))

    def total(self, turn: int, places: Array) -> Array:
        """The sums over all ranks at these places."""
        hashed = self._hash(turn, places)
        found = self._of(0, hashed)
        for rank in range(1, self.ranks):
            found = found + self._of(rank, hashed)
        return found

    def by(self, rule: Rule, turn: int, places: Array) -> Array:
        """The numbers that a rule gives at these places."""
        if rule.total:
            return self.total(turn, places + rule.offset)
        if rule.share:
            return self.own(places // rule.share, turn, places % rule.share + rule.offset)
        return self.own(rule.rank, turn, places + rule.offset)

    def first(self, turn: int, rule: Rule) -> int:
        """What is added to a place before it is hashed, modulo 2**64."""
        if not 0 <= turn < _TURNS:
            raise ValueError(f"{turn} is no turn from 0 to {_TURNS - 1}")
        return (turn << _TURN_SHIFT) + rule.offset

    def _hash(self, turn: int, places: Array) -> Array:
        return mixed(places + self.first(turn, Rule()))

    def _of(self, rank: int | Array, hashed: Array) -> Array:
        of_range = ((hashed & _LOW) + rank) % self.ranks
        within = (((hashed * (rank * _OF_RANK + 1)) >> 32) & _LOW) % self.width
        return of_range * self.width + within + 1


class KernelRule(ctypes.Structure):
    """A `Rule` as the kernels take it."""

    _fields_ = (
        ("first", ctypes.c_ulonglong),
        ("share", ctypes.c_ulonglong),
        ("total", ctypes.c_uint),
        ("rank", ctypes.c_uint),
        ("ranks", ctypes.c_uint),
        ("width", ctypes.c_uint),
    )


def kernel_rule(numbers: Numbers, rule: Rule, turn: int) -> KernelRule:
    """The rule of a turn for the kernels."""
    first = numbers.first(turn, rule)
    return KernelRule(first, rule.share, rule.total, rule.rank, numbers.ranks, numbers.width)


def due(operation: Operation, rank: int, share: int) -> Rule:
    """What must stand in the destination of `rank`.

    `share` is that of `Operation.share`. A broadcast stands at its root too.
    """
    match operation.name:
        case "all_reduce":
            return Rule(total=True)
        case "reduce_scatter":
            return Rule(total=True, offset=rank * share)
        case "all_gather":
            return Rule(share=share)
        case "all_to_all":
            return Rule(share=share, offset=rank * share)
        case _:
            return Rule(rank=operation.source)


def before(operation: Operation, rank: int) -> Rule | None:
    """What stands in the destination before the operation, never what is due; None: SPOILED.

    The root of a broadcast, whose source is its destination, is the one exception.
    """
    holds_own = operation.name == "all_reduce" or (
        operation.name == "broadcast" and rank == operation.source
    )
    return Rule(rank=rank) if holds_own else None


@dataclass(frozen=True, slots=True)
class CollectiveFault:
    """Wrong elements of a destination.

    `unwritten` of them still hold what was there before the operation.
    """

    elements: int
    unwritten: int
    first: tuple[WrongValue, ...]

    def __add__(self, other: CollectiveFault) -> CollectiveFault:
        return CollectiveFault(
            self.elements + other.elements,
            self.unwritten + other.unwritten,
            (*self.first, *other.first)[:LISTED],
        )


def fault(places: Array, expected: Array, old: Array | int, got: Array) -> CollectiveFault | None:
    """How a destination differs at these places; None where every element is right.

    Compared by value: the right numbers are whole and above 0, so no other bits have their value.
    """
    differs = got != expected
    if not (count := int(differs.sum())):
        return None
    there, want = places[differs][:LISTED].tolist(), expected[differs][:LISTED].tolist()
    have = got[differs][:LISTED].tolist()
    return CollectiveFault(
        count,
        int((differs & (got == old)).sum()),
        tuple(
            WrongValue(index=(place,), expected=repr(type(one)(right)), got=repr(one))
            for place, right, one in zip(there, want, have, strict=True)
        ),
    )
