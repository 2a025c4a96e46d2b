"""The power load's GPU: CUDA device 0 of those visible to the process. Needs torch."""

from __future__ import annotations

import ctypes
import time
from collections import deque
from typing import Any

import torch

from acceptance.core.dtype import DtypeName
from acceptance.loads.burn.compare import KINDS, KernelComparator
from acceptance.loads.burn.device import first_proof, operands
from acceptance.loads.burn.shape import Shape
from acceptance.loads.card import Kernels, gpu_identity, wait
from acceptance.loads.gemm.dtypes import DTYPES
from acceptance.loads.gemm.product import formats, settings, spoil
from acceptance.loads.program import LoadError
from acceptance.loads.pulse.device import GROUP, Alignment, Compared, aligned

WIDTHS = (8192, 4096, 2048, 1024)
PRODUCT_S = 1e-3  # the longest product: edges come to this grain
HANG_S = 10.0
# threads of the waves that every GPU since Volta has on each multiprocessor at once
_BLOCKS_EACH, _THREADS = 4, 256
_ASKED = 30  # times that the GPU's clock is held against the host's


class CudaDevice:
    """Products of the largest width that is short enough, and our kernel of waves."""

    def __init__(self) -> None:
        self.about = gpu_identity()
        settings()
        capability = torch.cuda.get_device_capability(0)
        self.dtype: DtypeName = "bf16" if capability >= (8, 0) else "f16"
        self._results = KernelComparator()
        for width in WIDTHS:
            self._prepare(Shape(width, width, width))
            for _ in range(3):  # the first launches load the library
                found = self.compared(self.start(GROUP))
            if found.seconds / GROUP <= PRODUCT_S:
                break
        wrong, said = first_proof(
            self._operands, self._shape, "normal", self._expected, self._first
        )
        if wrong is not None:
            raise LoadError(f"the first product is wrong already: {said}")
        self.about["products"] = f"{self._shape} {self.dtype}, {said}"
        self._waves = Kernels("pulse")
        self._blocks = _BLOCKS_EACH * self._waves.multiprocessors
        self._due = torch.empty(self._blocks * _THREADS, dtype=torch.int32, device="cuda:0")
        self._launch("first", self._due.data_ptr(), blocks=self._blocks, threads=_THREADS)
        self._alignment = self.align()

    def _prepare(self, shape: Shape) -> None:
        dtype = DTYPES[self.dtype]

        def take(size: int) -> Any:
            return torch.empty(size, dtype=torch.uint8, device="cuda:0")

        self._shape = shape
        self._operands = operands(dtype, (shape,), "normal", take)
        _, given = formats(dtype)
        self._expected, *slots = (
            torch.empty(shape.m, shape.n, dtype=given, device="cuda:0") for _ in range(GROUP + 1)
        )
        self._slots = deque(slots)
        self._products = {id(one): self._operands.product(shape, one) for one in slots}
        self._first = self._operands.product(shape, self._expected)
        self._first()

    def start(self, count: int) -> Any:
        """Implements `Device`."""
        begin = torch.cuda.Event(enable_timing=True)
        begin.record()
        slots = [self._slots[place] for place in range(count)]
        self._slots.rotate(-count)
        for slot in slots:
            self._products[id(slot)]()
        ticket = self._results.start(self._expected, slots, KINDS[self.dtype])
        for slot in slots:
            spoil(slot)
        end = torch.cuda.Event(enable_timing=True)
        end.record()
        return begin, end, ticket

    def compared(self, ticket: Any) -> Compared:
        """Implements `Device`."""
        begin, end, what = ticket
        wait(end.query, HANG_S, lambda _: time.sleep(5e-5))
        seconds = float(begin.elapsed_time(end)) / 1e3
        if isinstance(what, tuple) and len(what) == 3:
            tally, due, blocks = what
            wrong, chunks, waves = tally.tolist()
            if chunks < 0 or waves > due * blocks:
                raise LoadError("the kernel of waves has left no tally: nothing was compared by it")
            return Compared(chunks - wrong, (1,) * min(wrong, GROUP), seconds, waves // blocks)
        counts = self._results.counts(what)
        wrong_ones = tuple(elements for elements, _, _ in counts if elements)
        return Compared(len(counts) - len(wrong_ones), wrong_ones, seconds)

    def waves(self, begin_s: float, half_s: float, count: int) -> Any:
        """Implements `Device`."""
        tally = torch.zeros(3, dtype=torch.int64, device="cuda:0")
        begin = torch.cuda.Event(enable_timing=True)
        begin.record()
        arguments = (
            ctypes.c_void_p(self._due.data_ptr()),
            ctypes.c_ulonglong(int(begin_s * 1e9) + self._alignment.ahead_ns),
            ctypes.c_ulonglong(int(half_s * 1e9)),
            ctypes.c_uint(count),
            ctypes.c_void_p(tally.data_ptr()),
        )
        self._waves.launch("waves", self._blocks, _THREADS, arguments)
        # -1 is never a valid count
        found = torch.full((3,), -1, dtype=torch.int64, pin_memory=True)
        found.copy_(tally, non_blocking=True)
        end = torch.cuda.Event(enable_timing=True)
        end.record()
        return begin, end, (found, count, self._blocks)

    def align(self) -> Alignment:
        """Implements `Device`."""
        at = torch.zeros(1, dtype=torch.int64, device="cuda:0")
        answers = []
        for _ in range(_ASKED):
            torch.cuda.synchronize()
            asked = time.monotonic_ns()
            self._launch("tell", at.data_ptr())
            torch.cuda.synchronize()
            answered = time.monotonic_ns()
            answers.append((asked, int(at), answered))
        self._alignment = aligned(answers)
        return self._alignment

    def _launch(self, name: str, address: int, blocks: int = 1, threads: int = 1) -> None:
        self._waves.launch(name, blocks, threads, (ctypes.c_void_p(address),))
