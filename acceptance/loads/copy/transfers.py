"""The copies themselves: their buffers, and how a copy is started, timed and compared.

GPU 0 is the current device of the process. Each destination is spoiled as a whole before each copy,
so its later content comes from that copy alone. Where CUDA events take the time, work of some
tenths of a millisecond is queued before the first event. The copy and both events are then in the
queue before the GPU reaches them, and the time includes no delay of the host.
"""

from __future__ import annotations

import time

from acceptance.core.parts import Component
from acceptance.loads.card import CudaCard, take
from acceptance.loads.copy import device_pattern, pattern
from acceptance.loads.copy.device_pattern import Tensor
from acceptance.loads.copy.pattern import (
    FLIPPED,
    SPOILED,
    TransferFault,
    Words,
    first_number,
    first_of,
)
from acceptance.loads.miscompare import TransferCheck


class ToDevice:
    """To a buffer of a GPU, which compares it with words that it makes itself, from `first` on."""

    first: int

    def __init__(self, source: Tensor, destination: Tensor) -> None:
        self.source, self.destination = source, destination

    def spoil(self) -> None:
        """Queue the overwriting of the destination by its own GPU."""
        self.destination.fill_(SPOILED)

    def copy(self) -> None:
        """Queue the copy; from pageable memory it also waits for it."""
        self.destination.copy_(self.source, non_blocking=True)

    def fault(self) -> TransferFault | None:
        """Compare the destination."""
        return device_pattern.fault(self.destination, self.first)

    def corrupt(self) -> None:
        """Change a byte of the destination."""
        device_pattern.flip(self.destination)


class HostToDevice(ToDevice):
    """From a host buffer, which holds the words of `seed`, to a GPU buffer."""

    def __init__(self, host: Tensor, device: Tensor, seed: int) -> None:
        super().__init__(host, device)
        self.first = first_number(seed)


class DeviceToHost:
    """From a GPU buffer to a host buffer, where it is compared with `reference`.

    The GPU writes the words of `seed` anew for each copy.
    """

    def __init__(self, device: Tensor, host: Tensor, seed: int, reference: Words) -> None:
        self.device, self.host, self.first, self.reference = (
            device,
            host,
            first_number(seed),
            reference,
        )
        self._words: Words = host.numpy().view(reference.dtype)

    def spoil(self) -> None:
        """Overwrite the destination, then queue the write of the source."""
        self._words.fill(SPOILED)
        device_pattern.write(self.device, self.first)

    def copy(self) -> None:
        """Queue the copy; to pageable memory it also waits for it."""
        self.host.copy_(self.device, non_blocking=True)

    def fault(self) -> TransferFault | None:
        """Compare the destination; the copy must have ended."""
        return pattern.fault(self.reference, self._words)

    def corrupt(self) -> None:
        """Change a byte of the destination."""
        self._words[self._words.size // 2] ^= self._words.dtype.type(1 << FLIPPED)


class DeviceToDevice(ToDevice):
    """From a buffer of GPU 0 to one of the same GPU or of a peer, compared at the destination.

    Each turn has words of its own, which begin at `first_of` the GPUs' UUIDs and the turn: data of
    another turn or another GPU in the destination is wrong. The destination's GPU overwrites it
    before the copy, makes the expected words, and compares. The copy is queued on the source's GPU,
    after all work queued on both.
    """

    def __init__(self, source: Tensor, destination: Tensor, uuids: tuple[str, str]) -> None:
        super().__init__(source, destination)
        self.uuids, self.turn = uuids, 0

    def spoil(self) -> None:
        """Queue the spoiling of the destination, then this turn's words into the source."""
        self.turn += 1
        self.first = first_of(*self.uuids, self.turn)
        super().spoil()
        device_pattern.write(self.source, self.first)


Direction = ToDevice | DeviceToHost


class UnidirectionalTransfer:
    """One direction by itself, timed by CUDA events."""

    def __init__(
        self, name: TransferCheck, component: Component, counted: int, way: Direction
    ) -> None:
        self.name, self.component, self.counted, self.way = name, component, counted, way

    def ready(self) -> None:
        """Spoil the destination, and write the source."""
        self.way.spoil()

    def timed(self, times: int) -> float:
        """Seconds from the copy's beginning to its end, by the GPU's clock."""
        return take(CudaCard(), self.way.copy, times)

    def fault(self) -> TransferFault | None:
        """Compare the whole destination."""
        return self.way.fault()

    def corrupt(self) -> None:
        """Change a byte of the destination."""
        self.way.corrupt()


class PageableTransfer(UnidirectionalTransfer):
    """One direction from or to pageable memory, timed by the host's clock.

    The driver copies through its own buffers, which CUDA events do not cover.
    """

    def timed(self, times: int) -> float:
        """Seconds from the call to the copy's end, by the host's clock."""
        import torch

        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            self.way.copy()
        torch.cuda.synchronize()
        return time.perf_counter() - began


class BidirectionalTransfer(UnidirectionalTransfer):
    """One direction, timed while the other is busy throughout.

    `beside` copies of the other direction are queued first, and end later. `apart` counts the
    copies for which they ended earlier, however many there were: on a GPU that cannot copy both
    ways at once. The time then includes the wait for the other direction.
    """

    def __init__(
        self,
        name: TransferCheck,
        component: Component,
        counted: int,
        way: Direction,
        other: Direction,
        beside: int,
    ) -> None:
        import torch

        super().__init__(name, component, counted, way)
        self.other, self.beside, self.apart = other, beside, 0
        self._first, self._second = torch.cuda.Stream(), torch.cuda.Stream()

    def ready(self) -> None:
        """Spoil both destinations, and write both sources."""
        import torch

        self.way.spoil()
        self.other.spoil()
        torch.cuda.synchronize()

    def timed(self, times: int) -> float:
        """Seconds of the measured direction.

        Measured again beside twice as many copies where those of the other direction ended first.
        """
        took, covered = self._once(times)
        if not covered:
            self.ready()
            took, covered = self._once(times, 2)
        self.apart += not covered
        return took

    def _once(self, times: int, factor: int = 1) -> tuple[float, bool]:
        import torch

        start, began, ended, last = (torch.cuda.Event(enable_timing=True) for _ in range(4))
        with torch.cuda.stream(self._second):
            start.record()
            for _ in range(self.beside * factor):
                self.other.copy()
            last.record()
        with torch.cuda.stream(self._first):
            self._first.wait_event(start)
            began.record()
            for _ in range(times):
                self.way.copy()
            ended.record()
        torch.cuda.synchronize()
        covered = start.elapsed_time(ended) < start.elapsed_time(last)
        return float(began.elapsed_time(ended)) / 1e3, covered

    def fault(self) -> TransferFault | None:
        """Compare both destinations whole; `beside` marks a fault of the other direction."""
        found, besides = self.way.fault(), self.other.fault()
        return found if found is not None or besides is None else {**besides, "beside": True}
