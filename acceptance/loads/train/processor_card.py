"""The processor in the place of a GPU's clock, for tests without a GPU."""

from __future__ import annotations

import time
from dataclasses import dataclass

PROCESSOR_BYTES = 64 << 30


@dataclass(frozen=True, slots=True)
class ProcessorCard:
    """The processor in the place of a GPU, for tests: its work is done when it is given."""

    def mark(self) -> float:
        """The time."""
        return time.perf_counter()

    def seconds(self, begin: float, end: float) -> float:
        """Seconds between two marks."""
        return end - begin

    def free_bytes(self) -> int:
        """More than small models need."""
        return PROCESSOR_BYTES

    def whole_bytes(self) -> int:
        """More than small models need."""
        return PROCESSOR_BYTES
