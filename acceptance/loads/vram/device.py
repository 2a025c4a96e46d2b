"""The GPU's memory under test: nearly all free memory, with a limit on every wait.

Our kernels and CUDA's copies work on it. Everything runs in torch's current stream on CUDA device
0. Nothing else is allocated there between the allocation of this memory and the end.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

from acceptance.loads.card import Kernels
from acceptance.loads.program import LoadError
from acceptance.loads.vram.passes import (
    BLOCKS,
    FILE,
    RECORD,
    THREADS,
    TILE,
    WORD,
    Copy,
    Pass,
    Spin,
    Sweep,
    arguments,
    blank,
    record,
)
from acceptance.loads.vram.worker import PassResult

# Left free: the driver may need some memory for itself while kernels run (a display's, other
# contexts' pages), and it allocates in pieces of 2 MiB. Where the driver cannot give that much in
# one piece, twice as much is left free, and then twice that.
RESERVES = (128 << 20, 256 << 20, 512 << 20)
GIVE_UP_S = 60.0  # the longest pass so far, 288 GB all wrong, takes a few seconds
_POLL_S = 0.0002
# Works queued before a wait for those before them: on a full queue the driver itself would wait for
# ever.
_AHEAD = 128
_SPINS = 1 << 31  # reads of one word, of about half a microsecond each
_WRAP = 1 << 64


def wait(
    done: Callable[[], bool], clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    """Poll until `done` is true; raises LoadError after a minute.

    It never waits in the driver, because the driver does not return from a GPU that hangs.
    """
    until = clock() + GIVE_UP_S
    while not done():
        if clock() > until:
            raise LoadError(
                f"the GPU did not finish a pass over its memory within {GIVE_UP_S:.0f} s: it hangs"
            )
        sleep(_POLL_S)


def usable(free_bytes: int, reserve: int) -> int:
    """Words to test, in whole tiles, with this much free memory."""
    return max(0, free_bytes - reserve) // (TILE * WORD) * TILE


class CudaMemory:
    """The tested memory of CUDA device 0. Raises LoadError where it cannot be allocated."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        import torch

        self._clock, self._sleep = clock, sleep
        self._kernels = Kernels(FILE)
        self._blank = torch.frombuffer(
            bytearray((ctypes.c_uint64 * RECORD)(*blank())), dtype=torch.int64
        )
        self._record = torch.empty(RECORD, dtype=torch.int64, device="cuda")
        self._record.copy_(self._blank)
        torch.cuda.empty_cache()
        self.free_bytes, self.whole_bytes = (int(size) for size in torch.cuda.mem_get_info())
        self._memory = self._taken()
        self.words = int(self._memory.numel())

    def _taken(self) -> Any:
        import torch

        for reserve in RESERVES:
            words = usable(self.free_bytes, reserve)
            try:
                return torch.empty(words, dtype=torch.int64, device="cuda")
            except torch.cuda.OutOfMemoryError:
                continue
        raise LoadError(
            f"{self.free_bytes / 2**30:.2f} GiB of the GPU's memory are free and cannot be "
            "had in one piece: end what uses the GPU"
        )

    def work(self, one: Pass, late_s: float = 0.0) -> PassResult:
        """Run a pass and wait for it.

        Raises LoadError, and RuntimeError for errors of CUDA.
        """
        import torch

        self._record.copy_(self._blank)
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        if late_s:
            self._sleep(late_s)
        before: Any = None
        for given, work in enumerate(one.works, start=1):
            self._give(work)
            if given % _AHEAD == 0:
                now = torch.cuda.Event()
                now.record()
                if before is not None:
                    wait(before.query, self._clock, self._sleep)
                before = now
        ended.record()
        wait(ended.query, self._clock, self._sleep)
        found = self._record.tolist()
        return PassResult(
            float(began.elapsed_time(ended)) / 1e3, record([word % _WRAP for word in found])
        )

    def _give(self, work: Sweep | Copy | Spin) -> None:
        memory, log = (
            ctypes.c_void_p(self._memory.data_ptr()),
            ctypes.c_void_p(self._record.data_ptr()),
        )
        if isinstance(work, Copy):
            source, target = (
                self._memory[place : place + work.words] for place in (work.source, work.target)
            )
            target.copy_(source, non_blocking=True)
        elif isinstance(work, Sweep):
            blocks = self._kernels.multiprocessors * BLOCKS
            self._kernels.launch(
                work.kernel, blocks, THREADS, (memory, log, arguments(work, self.words))
            )
        else:
            self._kernels.launch("spin", 1, 1, (log, ctypes.c_uint64(_SPINS)))

    def get(self, place: int) -> int:
        """The word at a place."""
        return int(self._memory[place]) % _WRAP

    def put(self, place: int, word: int) -> None:
        """Write one word."""
        import torch

        self._memory[place : place + 1].copy_(
            torch.frombuffer(bytearray(word.to_bytes(8, "little")), dtype=torch.int64)
        )
