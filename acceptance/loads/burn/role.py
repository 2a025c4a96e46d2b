"""The roles of the burn: the device, one format's turn on it, and the copies beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from acceptance.loads.gemm.dtypes import Dtype
from acceptance.loads.miscompare import WrongReference
from acceptance.loads.mismatch import ElementPlaces

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
