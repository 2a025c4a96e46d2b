"""Tokens from the disk to where they are used: through host memory to the GPU, or into host memory.

    python -m acceptance.loads storage_feed folder=DIR component=disk:nvme0n1
        bytes=1073741824 seconds=5 [gpu=true]

A file of `bytes` is written and flushed as by `memmap`. In each pass its page cache is emptied,
the file is read from its start in pieces of 1 MiB, and each piece moves on to its own place in the
destination, which was spoiled before: with `gpu` by a copy from one of two pinned buffers into
the memory of the first GPU that the process sees, while the next piece is read; else it is read
into its place in host memory. The rate is tokens / seconds from the first read until the last token
is there, of all passes. After each pass every token is compared where it arrived: the GPU computes
what is due for itself. The kernel's count of bytes from disks must be at least what was read.

Passes begin until `seconds` are over, and none reads for longer than that.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from acceptance.loads.card import CudaCard
from acceptance.loads.copy import device_pattern, pattern
from acceptance.loads.copy.device_pattern import Tensor
from acceptance.loads.copy.pattern import TransferFault
from acceptance.loads.cpu.memory_bandwidth import available_bytes
from acceptance.loads.program import LoadError
from acceptance.loads.storage.contract import FEED, FEED_GPU, FEED_HOST, FEED_MISCOMPARES, Feed
from acceptance.loads.storage.job import Job, read_bytes, require_cold, require_memory
from acceptance.loads.storage.scratch_file import ScratchFile
from acceptance.loads.storage.tokens import (
    BLOCK,
    PIECE,
    TOKEN,
    WORD,
    Content,
    damage,
    flip,
    pieces,
    write_whole,
    wrong_file,
)

TURN = 1
_BUFFERS = 2
_HIT = 2 * BLOCK  # where a fault is made: in the first piece, which every pass reads


class HostMemory:
    """Host memory as the destination."""

    def __init__(self, size: int) -> None:
        self._words = np.empty(size // WORD, dtype=np.uint64)

    def spoil(self) -> None:
        """Overwrite all of it."""
        self._words.fill(pattern.SPOILED)

    def buffer(self, offset: int, size: int) -> memoryview:
        """The piece's own place."""
        return self._words[offset // WORD : (offset + size) // WORD].data.cast("B")

    def accept(self, offset: int, size: int) -> None:
        """It is there."""

    def finish(self) -> None:
        """All are there."""

    def fault(self, content: Content, offset: int, size: int) -> TransferFault | None:
        """How a piece differs from the content."""
        part = self._words[offset // WORD : (offset + size) // WORD]
        return pattern.fault(content.words(offset, part.size), part)

    def corrupt(self) -> None:
        """Invert one bit of the first piece."""
        flip(self._words, 1)


class GpuMemory:
    """The memory of the process's first GPU as the destination.

    Raises LoadError where so much is not free.
    """

    def __init__(self, size: int) -> None:
        import torch

        if size > (free := CudaCard().free_bytes()):
            raise LoadError(f"{size} bytes are due on the GPU, and {free} are free there")
        self._device: Tensor = torch.empty(size // WORD, dtype=torch.int64, device="cuda")
        self._pinned = [
            torch.empty(PIECE // WORD, dtype=torch.int64, pin_memory=True) for _ in range(_BUFFERS)
        ]
        self._copied: list[Any] = [None] * _BUFFERS

    def spoil(self) -> None:
        """Overwrite all of it."""
        self._device.fill_(pattern.SPOILED)
        self.finish()

    def buffer(self, offset: int, size: int) -> memoryview:
        """The pinned buffer whose turn it is, once its last copy has ended."""
        turn = offset // PIECE % _BUFFERS
        if self._copied[turn] is not None:
            self._copied[turn].synchronize()
        words = self._pinned[turn].numpy()[: size // WORD]
        words.fill(pattern.SPOILED)
        return memoryview(words).cast("B")

    def accept(self, offset: int, size: int) -> None:
        """Queue the copy."""
        import torch

        turn = offset // PIECE % _BUFFERS
        place = self._device[offset // WORD : (offset + size) // WORD]
        place.copy_(self._pinned[turn][: size // WORD], non_blocking=True)
        self._copied[turn] = torch.cuda.Event(enable_timing=True)
        self._copied[turn].record()

    def finish(self) -> None:
        """Return when all copies have ended."""
        import torch

        torch.cuda.synchronize()

    def fault(self, content: Content, offset: int, size: int) -> TransferFault | None:
        """How a piece differs from words that the GPU makes itself."""
        place = self._device[offset // WORD : (offset + size) // WORD]
        return device_pattern.fault(place, content.number(offset))

    def corrupt(self) -> None:
        """Invert one bit of the first piece."""
        device_pattern.flip(self._device[: PIECE // WORD])


def measure(ask: Feed, job: Job) -> None:
    """The whole load."""
    content, size = Content(job.seed, TURN), ask.bytes // BLOCK * BLOCK
    require_memory(_BUFFERS * PIECE if ask.gpu else size, available_bytes())
    with ScratchFile.create(job.folder, FEED, size) as file:
        write_whole(file, content)
        damage(file, content, ask.inject, _HIT, 0)
        if ask.inject == "short":
            file.shorten(_HIT)
        destination = GpuMemory(size) if ask.gpu else HostMemory(size)
        tokens, counted, took, number = 0, 0, 0.0, 0
        until = time.monotonic() + ask.seconds
        while number == 0 or time.monotonic() < until:
            file.drop()
            destination.spoil()
            before, began = read_bytes(), time.monotonic()
            done = 0
            for offset, part in pieces(size):
                file.read_into(offset, destination.buffer(offset, part))
                destination.accept(offset, part)
                done = offset + part
                if time.monotonic() - began >= ask.seconds:
                    break
            destination.finish()
            took += time.monotonic() - began
            tokens += done // TOKEN
            here = read_bytes() - before
            require_cold(file.name, done, here)
            counted += here
            if number == 0 and ask.inject == "flight":
                destination.corrupt()
            for offset, part in pieces(done):
                if (found := destination.fault(content, offset, part)) is not None:
                    job.count(wrong_file(ask.disk, "feed", FEED, number, content, offset, found))
            number += 1
    name = FEED_GPU if ask.gpu else FEED_HOST
    job.output.note(
        f"{number} passes over {size} bytes, {tokens} tokens in {took:.3f} s; the kernel counts "
        f"{counted} bytes from the disk"
    )
    job.output.reading(name, "Mtokens/s", ask.disk, tokens / took / 1e6)
    job.output.reading(FEED_MISCOMPARES, "count", ask.disk, job.wrong)
