"""The GPU as the loads use it: its clock, its free memory, and its identity."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from acceptance.loads.program import LoadError

# Share of the free memory. The library's work space and the rounding of allocations need the rest.
MEMORY_SHARE = 0.95


class Card(Protocol):
    """A device that executes queued work in order, asynchronously to the host."""

    def mark(self) -> Any:
        """A marker behind all work queued so far."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the device's clock; waits for the later mark."""

    def free_bytes(self) -> int:
        """Memory that can be allocated."""


@dataclass(frozen=True, slots=True)
class CudaCard:
    """CUDA device 0 of those visible to the process."""

    def mark(self) -> Any:
        """An event recorded in the stream of the products."""
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two CUDA events, which have a resolution of about half a microsecond."""
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def free_bytes(self) -> int:
        """Free memory as the driver reports it, after torch has released its unused cache."""
        import torch

        torch.cuda.empty_cache()
        return int(MEMORY_SHARE * torch.cuda.mem_get_info()[0])

    def whole_bytes(self) -> int:
        """Total memory of the GPU."""
        import torch

        return int(torch.cuda.mem_get_info()[1])


HANG_S = 60.0  # many times what the slowest product, or pass over the memory, takes
_LONGEST_PAUSE_S = 0.002


def boot_s() -> float:
    """Seconds since boot, the clock that telemetry uses too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wait(
    done: Callable[[], bool], within_s: float = HANG_S, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Return when `done` is true. It never waits in the driver, which may never return.

    Raises LoadError after `within_s` seconds: the GPU hangs.
    """
    end, pause = time.monotonic() + within_s, 1e-4
    while not done():
        if time.monotonic() > end:
            raise LoadError(
                f"the GPU has not finished what it was given within {within_s:g} s: it hangs"
            )
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


class PatientCard(CudaCard):
    """CUDA device 0, with a limit on the wait for a mark."""

    def seconds(self, begin: Any, end: Any) -> float:
        """Seconds between two marks by the GPU's clock. Raises LoadError where it hangs."""
        wait(end.query)
        return float(begin.elapsed_time(end)) / 1e3


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


def uuid(index: int) -> str:
    """The UUID of a visible CUDA device, in NVML's spelling."""
    import torch

    return f"GPU-{torch.cuda.get_device_properties(index).uuid}"


def gpu_identity() -> dict[str, Any]:
    """The GPU's name, UUID and compute capability, and the library versions, for the record.

    Raises LoadError where torch or a GPU is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise LoadError(
            f"torch cannot be imported ({error}): run it in rigproof's image, or install "
            "rigproof[gpu] in place of rigproof"
        ) from None
    if not torch.cuda.is_available():
        raise LoadError(
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
    """Seconds that the card needs for `times` pieces of work, queued at once."""
    begin = card.mark()
    for _ in range(times):
        work()
    return card.seconds(begin, card.mark())


def counted_work(work: Callable[[], None], inject: str | None) -> Callable[[], None]:
    """A piece of work as it counts; made twice where slowness is injected."""
    if inject != "slow":
        return work

    def twice() -> None:
        work()
        work()

    return twice


def times_for(seconds: float, one_s: float) -> int:
    """How many pieces of work of `one_s` fill `seconds`.

    At least one, and no more than the host can queue without waiting.
    """
    return max(1, min(math.ceil(seconds / max(one_s, 1e-9)), 10000))
