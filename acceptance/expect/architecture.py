"""Limits for GPUs without a model sheet, from their architecture.

A limit is the peak, from the architecture's operations per clock, times the least sound share.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core import message
from acceptance.core.dtype import native_dtypes
from acceptance.core.message import Message, SetupError, english
from acceptance.core.strict import Strict, Text
from acceptance.expect.sheet import NO_SHEET, Count, Figure

Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class Architecture(Strict, frozen=True):
    """`[[architecture]]`: all cards of one compute capability, or of one brand among them.

    `brand` is a word of the names of the cards that are meant; None means all others. `cores` are
    the CUDA cores of one multiprocessor, `operations` its operations per clock, by format. `short`,
    `sustained` and `copy` are the least shares of the peak that a sound card reaches: matrix
    products cool and hot, and copies inside the memory. `unlimited` gives the formats without a
    known share, and why.
    """

    name: Text
    compute_capability: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,2}[.][0-9]$")]
    cores: Count
    operations: dict[str, Figure]
    short: dict[str, Share]
    sustained: dict[str, Share]
    copy: Share
    source: Text
    basis: Text
    brand: Text | None = None
    unlimited: dict[str, Text] = msgspec.field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.compute_capability, self.brand))

    def __str__(self) -> str:
        return f"{self.brand} cards of {self.name}" if self.brand else self.name

    @property
    def told(self) -> message.Text:
        """The cards that are meant, for the reader of a basis."""
        if self.brand is None:
            return self.name
        return Message(
            english("cards_of", "{brand} cards of {architecture}"),
            {"brand": self.brand, "architecture": self.name},
        )

    @property
    def origin(self) -> Message:
        """The entry, as the origin of limits."""
        return Message(english("architecture", "architecture: {name}"), {"name": self.told})

    def names(self, model: str | None) -> bool:
        """Whether a card of this name is meant.

        `brand` is compared with whole words (an H200 is no H20).
        """
        return self.brand is None or (
            model is not None and re.search(rf"\b{re.escape(self.brand)}\b", model) is not None
        )


class _File(Strict, frozen=True):
    architecture: Annotated[tuple[Architecture, ...], msgspec.Meta(min_length=1)]


def _problem(architecture: Architecture) -> str | None:
    """The first problem that types cannot express, or None."""
    native = set(native_dtypes(architecture.compute_capability))
    if set(architecture.operations) != native:
        return f"operations must name {', '.join(sorted(native))}"
    if set(architecture.short) != set(architecture.sustained):
        return "short and sustained must name the same formats"
    if (
        set(architecture.short) & set(architecture.unlimited)
        or set(architecture.short) | set(architecture.unlimited) != native
    ):
        return "each format must stand either in short and sustained or in unlimited"
    for dtype, share in architecture.short.items():
        if share <= architecture.sustained[dtype]:
            return f"a hot card is slower, so short.{dtype} must be above sustained.{dtype}"
    return None


def read(path: Path) -> tuple[Architecture, ...]:
    """The architectures of a file, in file order.

    Raises SetupError, naming the file and the entry.
    """
    found = resources.read(path, _File).architecture
    named: set[tuple[str, str | None]] = set()
    for one in found:
        key = (one.compute_capability, one.brand)
        if problem := "stands twice" if key in named else _problem(one):
            raise SetupError(f"{path.name}: {one} ({one.compute_capability}): {problem}")
        named.add(key)
    return found


def find(
    known: Sequence[Architecture], compute_capability: str | None, model: str | None
) -> Architecture | None:
    """The architecture of a card; None where it is not known.

    The entry for the card's brand takes precedence over the one for all others.
    """
    fit = [
        one for one in known if one.compute_capability == compute_capability and one.names(model)
    ]
    return min(fit, key=lambda one: one.brand is None, default=None)


@functools.cache
def shipped() -> tuple[Architecture, ...]:
    """All of rigproof's architectures. Raises SetupError."""
    return read(resources.locate("models") / NO_SHEET)
