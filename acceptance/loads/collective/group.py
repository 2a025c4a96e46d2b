"""A group of ranks as one rank uses it: its memory, and the operations of all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from acceptance.loads.collective.operation import Operation
from acceptance.loads.collective.pattern import Array, Numbers, Rule
from acceptance.loads.miscompare import ElementType


class Memory(Protocol):
    """The memory of a rank's device."""

    def places(self, first: int, count: int) -> Array:
        """The numbers from `first` on, as int64."""

    def buffer(self, dtype: ElementType, count: int) -> Array:
        """A new buffer; its content is anything."""

    def write(self, buffer: Array, numbers: Numbers, rule: Rule, turn: int) -> bool:
        """Write the numbers by a kernel of the device; False where it has none."""

    def differing(self, buffer: Array, numbers: Numbers, rule: Rule, turn: int) -> int | None:
        """How many elements are not those of the rule, by a kernel; None where it has none."""

    def words(self, piece: Array) -> Array:
        """The bits of elements of four bytes, as int64."""

    def free_bytes(self) -> int:
        """Memory that can be allocated."""


class Group(Protocol):
    """The group of a rank. All meet in the first operation: what comes before needs no other."""

    @property
    def memory(self) -> Memory:
        """The memory of the rank's device."""

    @property
    def about(self) -> str:
        """The library, for people."""

    @property
    def uuid(self) -> str:
        """The UUID of the rank's GPU; empty without one."""

    def run(self, operation: Operation, source: Array, destination: Array) -> float:
        """Seconds of one operation, from when all ranks are there to its end at this rank.

        `source` and `destination` are one buffer for an operation in place.
        """

    def latency(self, buffer: Array, calls: int) -> float | None:
        """Seconds of one all-reduce of `buffer`, as one of `calls` in a CUDA graph.

        Each takes the largest number at each place, so that more of them change nothing. None
        without a GPU.
        """

    def leave(self) -> None:
        """Leave the group, together with all others."""


# What a rank calls to begin: its number, how many they are, and a folder that all of them see.
Join = Callable[[int, int, Path], Group]
