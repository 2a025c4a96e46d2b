"""The shapes of the burn's products: three for each format, with results of equal size. Pure.

A product of m x k by k x n matrices takes 2 m n k operations and gives m x n elements, each of
which is read again to be compared. The greater the depth k, the lower the cost of comparing. So
fast formats have a greater k, at which reading the results takes about a hundredth of the time on
the fastest memory available. The libraries tile the square, tall and wide shapes differently, and
so reach other parts of the GPU with the same data. All results of a format have the same size, so
any of them fits any place in memory.

The ring of results: the content of each place, and when it is compared. Pure.

Memory holds `groups` groups of results. The oldest group is overwritten next, and is compared
before that. So a result lies in memory for one round of the ring, and a cell that loses its content
is found as well as a wrong product. The comparison begins AHEAD groups earlier, so that its result
arrives in time and the GPU never waits for the host.

The roles of the burn: the device, one format's turn on it, and the copies beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.miscompare import WrongReference
from acceptance.loads.mismatch import ElementPlaces

WIDTH = 8192
DEPTH = {
    "f64": 8192,
    "f32": 8192,
    "tf32": 16384,
    "f16": 16384,
    "bf16": 16384,
    "f8": 32768,
    "i8": 32768,
}
# Architectures whose float64 rate is half of the float32 rate; the others have a 32nd or a 64th
# (NVIDIA's CUDA programming guide, throughput of arithmetic instructions).
FAST_FLOAT64 = frozenset({(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)})


@dataclass(frozen=True, slots=True)
class Shape:
    """An m x k matrix by a k x n matrix."""

    m: int
    n: int
    k: int

    @property
    def elements(self) -> int:
        """Elements of the result."""
        return self.m * self.n

    @property
    def operations(self) -> int:
        """Operations of one product: a multiplication and an addition for each of m n k pairs."""
        return 2 * self.m * self.n * self.k

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"


def shapes(dtype: Dtype, divisor: int = 1) -> tuple[Shape, ...]:
    """The square, the tall and the wide shape.

    `divisor` (a power of two) makes them narrower for a small or slow GPU. The depth stays, because
    it decides the cost of comparing; it shrinks only beyond a divisor of 8, which tests use.
    """
    width, depth = WIDTH // divisor, DEPTH[dtype.short] // max(1, divisor // 8)
    return (
        Shape(width, width, depth),
        Shape(2 * width, width // 2, depth),
        Shape(width // 2, 2 * width, depth),
    )


def divisor_for(dtype: Dtype, capability: tuple[int, int], whole_bytes: int) -> int:
    """The divisor of the width on a GPU of this compute capability and memory.

    It is the same for all GPUs of a model. float64 is made small where the architecture has a 32nd
    or a 64th of float32's rate. Operands and expected results take at most an eighth of the memory.
    With the memory for proving the first products (the second operand in float64, and its squares)
    they take at most six tenths.
    """
    divisor = 4 if dtype.short == "f64" and capability not in FAST_FLOAT64 else 1
    while divisor < 8 and not _fits(dtype, divisor, whole_bytes):
        divisor *= 2
    return divisor


def _fits(dtype: Dtype, divisor: int, whole_bytes: int) -> bool:
    found = shapes(dtype, divisor)
    a, b = operand_bytes(dtype, found)
    kept = a + b + len(found) * result_bytes(dtype, found)
    wide = 0 if dtype.short == "f64" else 16 * b // dtype.operand_bytes
    return 8 * kept <= whole_bytes and 10 * (kept + wide) <= 6 * whole_bytes


def operand_bytes(dtype: Dtype, shapes: tuple[Shape, ...]) -> tuple[int, int]:
    """Bytes of each operand in its largest shape; smaller shapes use the beginning of it."""
    return (
        max(shape.m * shape.k for shape in shapes) * dtype.operand_bytes,
        max(shape.k * shape.n for shape in shapes) * dtype.operand_bytes,
    )


def result_bytes(dtype: Dtype, shapes: tuple[Shape, ...]) -> int:
    """Bytes of one result, equal for all shapes."""
    return shapes[0].elements * dtype.result_bytes


AHEAD = 2
MIN_GROUPS = AHEAD + 2  # minimum number of groups of a ring


def division(slots: int, most: int, shapes: int) -> tuple[int, int]:
    """Divide `slots` places into groups: results in a group (`most` at most), and number of groups.

    Among the divisions that use the most places, or at most a twentieth of `slots` fewer, the one
    with the largest group wins. The number of groups is no multiple of the number of shapes, so
    each place previously held a result of another shape, and a product that was never written is
    found. Raises ValueError where there are too few places.
    """
    found = []
    for group in range(1, most + 1):
        groups = slots // group
        groups -= groups % shapes == 0
        if groups >= MIN_GROUPS:
            found.append((group, groups))
    if not found:
        raise ValueError(
            f"a ring needs {MIN_GROUPS} groups of results, and there is memory for {slots} results"
        )
    best = max(group * groups for group, groups in found)
    return max(one for one in found if one[0] * one[1] >= best - slots / 20)


@dataclass(slots=True)
class ResultGroup:
    """A group of results, and its comparison once begun.

    `number` is that of its first product, `made_s` the time at which it was queued, in seconds.
    """

    group: int
    number: int
    shape: int
    made_s: float
    ticket: Any = None


class ResultRing:
    """The next group to overwrite, and the content of every group."""

    def __init__(self, groups: int) -> None:
        if groups < MIN_GROUPS:
            raise ValueError(
                f"a ring needs {MIN_GROUPS} groups of results, and there is memory for {groups}"
            )
        self._held: list[ResultGroup | None] = [None] * groups
        self._next = 0

    @property
    def next(self) -> int:
        """The group to be overwritten next."""
        return self._next

    def ahead(self) -> ResultGroup | None:
        """The group to compare now: the one AHEAD of the next.

        None where that is empty or its comparison has begun.
        """
        made = self._held[(self._next + AHEAD) % len(self._held)]
        return made if made is not None and made.ticket is None else None

    def pop(self) -> ResultGroup | None:
        """Remove and return the content of the next group."""
        made, self._held[self._next] = self._held[self._next], None
        return made

    def push(self, made: ResultGroup) -> None:
        """Record that the next group was filled, and advance."""
        self._held[self._next] = made
        self._next = (self._next + 1) % len(self._held)

    def drain(self) -> list[ResultGroup]:
        """The groups in the ring, oldest first."""
        order = self._held[self._next :] + self._held[: self._next]
        return [made for made in order if made is not None]


# wrong elements of a result, and how many of them are NaN and infinite
Counts = tuple[int, int, int]


class SlotPlaces(ElementPlaces):
    """The slot of a wrong result in the ring; the rest only where it still differs."""

    slot: int


class ChangedOperand(TypedDict):
    """An operand, "a" or "b", and its digest before and after it changed."""

    operand: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The outcome of the first products of a format.

    `digests` are (shape, inputs, result); `one_s` is the time of the slowest product in seconds.
    """

    findings: tuple[WrongReference, ...]
    notes: tuple[str, ...]
    digests: tuple[tuple[str, str, str], ...]
    one_s: float


class FormatTurn(Protocol):
    """One format with the memory to itself; `device.TorchTurn` is one on a GPU."""

    digests: list[str]
    group: int  # results compared at once

    @property
    def groups(self) -> int:
        """The number of groups of results in memory."""

    @property
    def filled_bytes(self) -> int:
        """Bytes of the results in the ring."""

    def make(self, group: int, shape: int, number: int) -> None:
        """Queue a group of products of one shape; the first is product `number` of the format."""

    def compare(self, group: int, shape: int) -> Any:
        """Begin to compare a group with its expected result."""

    def counts(self, ticket: Any) -> Sequence[Counts]:
        """Wrong, NaN and infinite elements of each result of a group."""

    def describe(self, group: int, place: int, shape: int) -> SlotPlaces:
        """Where and how a wrong result differs."""

    def repeat(self, group: int, shape: int, times: int) -> None:
        """Make `times` products of a group once more, uncounted, for injected slowness."""

    def changed_inputs(self) -> Sequence[ChangedOperand]:
        """The operands that have changed."""


class BurnDevice(Protocol):
    """The device that makes the products."""

    def prove(self, dtype: Dtype, divisor: int) -> Proof:
        """Make and check the first products."""

    def fill(self, size: int) -> None:
        """Allocate `size` bytes for operands and results."""

    def begin(self, dtype: Dtype, divisor: int, most: int) -> FormatTurn:
        """Give the memory to one format; at most `most` results are compared at once.

        Raises ValueError where the memory holds too few results.
        """


class BackgroundCopies(Protocol):
    """Copies over the links, beside the products."""

    def step(self) -> None:
        """Serve the copies; called about once for each group of products."""

    def finish(self) -> None:
        """Finish the copies and report on them."""
