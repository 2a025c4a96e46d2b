"""The roles of the burn: a device that makes products and compares them, one format's turn on
it, and what goes on beside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from acceptance.loads.gemm.dtypes import Dtype

Counts = tuple[
    int, int, int
]  # wrong elements of a result, NaN among them, infinite ones among them


@dataclass(frozen=True, slots=True)
class Proof:
    """What the first products of a format were worth: findings, notes, (shape, inputs, result)
    digests, and seconds of the slowest.
    """

    findings: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    digests: tuple[tuple[str, str, str], ...]
    one_s: float


class FormatTurn(Protocol):
    """One format with the memory to itself; `burn_device.TorchTurn` is one on a GPU."""

    digests: list[str]
    group: int  # results compared at once

    @property
    def groups(self) -> int:
        """How many groups of results memory holds."""

    @property
    def filled_bytes(self) -> int:
        """Of results."""

    def make(self, group: int, shape: int, number: int) -> None:
        """Give the device a group of products of one shape to make; the first is product
        `number` of the format.
        """

    def compare(self, group: int, shape: int) -> Any:
        """Begin to compare a group with what its products must be."""

    def counts(self, ticket: Any) -> Sequence[Counts]:
        """Wrong, NaN and infinite elements of each result of a group."""

    def describe(self, group: int, place: int, shape: int) -> dict[str, Any]:
        """Where and how a wrong result differs."""

    def repeat(self, group: int, shape: int, times: int) -> None:
        """Make so many products of a group once more, where slowness is
        injected: they count for nothing.
        """

    def changed_inputs(self) -> Sequence[dict[str, Any]]:
        """Which operands are not what they were."""


class BurnDevice(Protocol):
    """Where the products are made."""

    def prove(self, dtype: Dtype, divisor: int) -> Proof:
        """Make and check the first products."""

    def fill(self, size: int) -> None:
        """Take so many bytes for operands and results."""

    def begin(self, dtype: Dtype, divisor: int, most: int) -> FormatTurn:
        """Give the memory to one format; so many results at most are compared at once.

        Raises ValueError where it holds too few.
        """


class BackgroundCopies(Protocol):
    """What goes on beside the products: copies over the links."""

    def step(self) -> None:
        """Look after it; called about as often as a group is made."""

    def finish(self) -> None:
        """Bring it to its end and tell what came of it."""
