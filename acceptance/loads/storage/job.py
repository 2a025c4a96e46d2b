"""What all storage loads share: the folder that they work in, and what they say of memory."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.core.limit import GIB
from acceptance.core.message import Quantity
from acceptance.loads.protocol import Output
from acceptance.loads.storage.scratch_file import StorageError

SEED_BITS = 20  # as in `tokens`, which loads numpy


@dataclass(frozen=True, slots=True)
class Job:
    """A running load: the descriptor of its folder, the seed of its files, and its output."""

    folder: int
    seed: int
    output: Output


def require_memory(needed: int, available: int) -> None:
    """Raise StorageError where buffers of `needed` bytes take over half of the free memory."""
    if 2 * needed > available:
        raise StorageError(
            "storage_no_memory",
            needed=Quantity(needed / GIB, "GiB"),
            available=Quantity(available / GIB, "GiB"),
        )
