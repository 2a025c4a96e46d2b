"""The GPU as the loads use it: its clock, its free memory, and who it is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

# of the free memory: the library's own work space and the rounding up of allocations need the rest
MEMORY_SHARE = 0.95


class CardError(Exception):
    """The GPU cannot be used as asked; the message is one sentence for the user."""


class Card(Protocol):
    """A device that works off what it is given in order, beside the processor that gives it."""

    def mark(self) -> Any:
        """A moment in the device's own course, after everything it was given until now."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the device's clock; waits until the later one is reached."""

    def free_bytes(self) -> int:
        """Memory that can be had."""


@dataclass(frozen=True, slots=True)
class CudaCard:
    """CUDA device 0 of those that the process sees."""

    def mark(self) -> Any:
        """An event in the stream of the products."""
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """By the two events, which CUDA times to about half a microsecond."""
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def free_bytes(self) -> int:
        """What the driver calls free, once torch has given back what it holds unused."""
        import torch

        torch.cuda.empty_cache()
        return int(MEMORY_SHARE * torch.cuda.mem_get_info()[0])

    def whole_bytes(self) -> int:
        """All the memory that the GPU has."""
        import torch

        return int(torch.cuda.mem_get_info()[1])


def uuid(index: int) -> str:
    """The UUID of a CUDA device that the process sees, as NVML spells it."""
    import torch

    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


def gpu_identity() -> dict[str, Any]:
    """Which GPU this is and what drives it, for the record; CardError where
    torch or a GPU is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise CardError(f"torch cannot be imported ({error}): run it in rigproof's image") from None
    if not torch.cuda.is_available():
        raise CardError(
            "torch sees no GPU: see that `nvidia-smi` lists one here and that "
            "CUDA_VISIBLE_DEVICES names it"
        )
    traits = torch.cuda.get_device_properties(0)
    return {
        "gpu": str(traits.name),
        "uuid": uuid(0),
        "capability": f"{traits.major}.{traits.minor}",
        "library": f"torch {torch.__version__}, CUDA {torch.version.cuda}",
    }


def take(card: Card, work: Callable[[], None], times: int) -> float:
    """Seconds that the card needs for `times` pieces of work, given at once."""
    begin = card.mark()
    for _ in range(times):
        work()
    return card.seconds(begin, card.mark())


def times_for(seconds: float, one_s: float) -> int:
    """How many pieces of work of `one_s` fill this time; one at least, and no more than the
    processor can give ahead without waiting.
    """
    return max(1, min(math.ceil(seconds / max(one_s, 1e-9)), 10000))
