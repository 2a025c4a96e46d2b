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

The collective operations, their sizes and their bus bandwidth, as nccl-tests defines them. Pure.

Source: nccl-tests, doc/PERFORMANCE.md, and `GetCollByteCount` and `GetBw` of each test. Algorithm
bandwidth is S / t, bus bandwidth that times a factor, so that it compares with the rate of the
hardware whatever the number n of ranks. S in bytes:

| operation | S | factor |
|---|---|---|
| all_reduce | the whole buffer, which every rank sends and receives | 2 (n - 1) / n |
| all_gather | what each rank receives: the shares of all ranks | (n - 1) / n |
| reduce_scatter | what each rank sends: the shares of all ranks | (n - 1) / n |
| all_to_all | what each rank sends: a share for each rank, its own too | (n - 1) / n |
| broadcast | the whole buffer, which the root sends | 1 |
| send_receive | what the sender sends | 1 |

One difference: in nccl-tests' send-receive every rank sends to the next one at the same time; here
one rank sends and one receives, for each ordered pair of ranks.

Sizes go from 8 bytes to 4 GiB, as memory and time allow. Up to 1 GiB each is eight times the one
before, so the small and the large protocols of NCCL are both used (LL, LL128, Simple), and 16 MiB,
128 MiB and 1 GiB are among them.

A digest of the bits of a buffer, and which ranks hold others. Pure.

The words of a buffer, each times an odd number of its place, are added modulo 2**64. One changed
word always changes the digest, as an odd number has an inverse; of several changed words one in
2**64 goes unseen. Words are arrays of int64, of numpy or torch alike.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from acceptance.core.limit import GIB
from acceptance.core.parts import Component
from acceptance.loads.miscompare import CollectiveCheck, DifferingDigests, ElementType, WrongValue
from acceptance.loads.protocol import Output

OPERATIONS: tuple[CollectiveCheck, ...] = get_args(CollectiveCheck)
_DIVIDED: frozenset[CollectiveCheck] = frozenset({"all_gather", "reduce_scatter", "all_to_all"})
STEP = 8
SIZES: tuple[int, ...] = (*(8 * STEP**number for number in range(10)), 4 * GIB)
BUFFERS = 2  # of the size: source and destination
_ALIGNED = 16  # bytes: NCCL's own granularity, to which nccl-tests rounds a share down


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation between `ranks` ranks.

    `source` is the root of a broadcast or the sender, `destination` the receiver; the other
    operations use neither. Raises ValueError for fewer than two ranks, for an end that is no rank,
    and for a rank that would send to itself.
    """

    name: CollectiveCheck
    ranks: int
    source: int = 0
    destination: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 2:
            raise ValueError(f"{self.name} needs two ranks, not {self.ranks}")
        if not {self.source, self.destination} <= set(range(self.ranks)):
            raise ValueError(f"{self.source} and {self.destination} are not both ranks")
        if self.name == "send_receive" and self.source == self.destination:
            raise ValueError(f"rank {self.source} cannot send to itself")

    @property
    def factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        if self.name == "all_reduce":
            return 2 * (self.ranks - 1) / self.ranks
        return (self.ranks - 1) / self.ranks if self.name in _DIVIDED else 1.0

    @property
    def in_place(self) -> bool:
        """Whether source and destination are one buffer, as torch.distributed has it."""
        return self.name in ("all_reduce", "broadcast")

    @property
    def shares(self) -> int:
        """The shares that S consists of: one for each rank, or one."""
        return self.ranks if self.name in _DIVIDED else 1

    def share(self, size: int, itemsize: int) -> int:
        """Elements of a share, for an S of at most `size` bytes where that is possible.

        A share of 16 bytes or more is rounded down to a multiple of 16, as in nccl-tests. A smaller
        one is at least one element, where nccl-tests would send nothing: S may then exceed `size`.
        """
        bytes_ = size // self.shares
        if self.name in _DIVIDED and bytes_ >= _ALIGNED:
            bytes_ -= bytes_ % _ALIGNED
        return max(1, bytes_ // itemsize)

    def size(self, share: int, itemsize: int) -> int:
        """S in bytes."""
        return share * self.shares * itemsize

    def takes_part(self, rank: int) -> bool:
        """Whether this rank sends or receives."""
        return self.name != "send_receive" or rank in (self.source, self.destination)

    def sends(self, rank: int, share: int) -> int:
        """Elements that this rank has in its source."""
        match self.name:
            case "reduce_scatter" | "all_to_all":
                return share * self.ranks
            case "broadcast" | "send_receive":
                return share if rank == self.source else 0
            case _:
                return share

    def receives(self, rank: int, share: int) -> int:
        """Elements of this rank's destination."""
        match self.name:
            case "all_gather" | "all_to_all":
                return share * self.ranks
            case "send_receive":
                return share if rank == self.destination else 0
            case _:
                return share

    def bus_rate(self, size: int, seconds: float) -> float:
        """Bus bandwidth in GB/s of 10**9 bytes, of an operation of `size` bytes."""
        return size / seconds / 1e9 * self.factor


def pairs(ranks: int) -> tuple[tuple[int, int], ...]:
    """All ordered pairs of ranks."""
    every = range(ranks)
    return tuple((source, end) for source in every for end in every if source != end)


def fitting(room: int, work: int) -> tuple[int, ...]:
    """The sizes for which a rank has memory.

    `room` is its free memory and `work` what verifying needs besides the buffers, in bytes. Raises
    ValueError where not even the smallest size fits.
    """
    found = tuple(size for size in SIZES if BUFFERS * size + work <= room)
    if not found:
        raise ValueError(f"{room / GIB:.2f} GiB of free memory are too little for any size")
    return found


def affordable(size: int, done: int, took_s: float, left_s: float) -> bool:
    """Whether `size` ends within `left_s` seconds, after `done` bytes took `took_s`.

    Time is taken to grow with the size. A part of it does not, so that sound hardware is rarely
    slower.
    """
    return took_s * size / done <= left_s


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
        return (
            self.own(places // rule.share, turn, places % rule.share + rule.offset)
            if rule.share
            else self.own(rule.rank, turn, places + rule.offset)
        )

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


_MODULUS = 1 << 64


def part(places: Array, words: Array) -> int:
    """The sum over these places; a digest is the sum of those of all places."""
    return int(((mixed(places) | 1) * words).sum()) % _MODULUS


def digest(parts: list[int]) -> str:
    """The digest of a buffer, from those of its pieces, in hexadecimal digits."""
    return f"{sum(parts) % _MODULUS:016x}"


def differing(digests: Mapping[Component, str]) -> dict[str, tuple[Component, ...]]:
    """The components by digest where not all have the same one; else empty."""
    found: dict[str, tuple[Component, ...]] = {}
    for component, one in digests.items():
        found[one] = (*found.get(one, ()), component)
    return found if len(found) > 1 else {}


def report_differing(
    output: Output, digests: Mapping[Component, str], found: str
) -> dict[str, tuple[Component, ...]]:
    """Report components with different digests of what must be the same; `found` says what.

    Returns them by digest; empty where all have the same one.
    """
    groups = differing(digests)
    if groups:
        output.miscompare(DifferingDigests(check="digest", found=found, digests=groups))
    return groups
