"""The words of the burn's copies, made and compared by our own kernels on the GPU where they lie.

Nothing waits: each call queues work on the current stream of its GPU. A comparison needs no other
buffer, because each word follows from its number (`copy_pattern`). What it found is in a tally on
the same GPU: words that are wrong, of these the words that still are what the buffer was
overwritten with, and the steps that were taken, which must be those that are due.
"""

from __future__ import annotations

import ctypes
from typing import Protocol

from acceptance.loads.burn_compare import steps
from acceptance.loads.copy_pattern import SPOILED, WORD
from acceptance.loads.cubin import Kernels
from acceptance.loads.gpu_product import Tensor

PLACES = 3  # of a tally, as the kernels have it
_THREADS = 256
_BLOCKS_EACH = 8


class Pattern(Protocol):
    """The words on one GPU; a tally is a tensor of PLACES numbers there, for one buffer."""

    def write(self, tensor: Tensor, first: int) -> None:
        """Fill a buffer with the words that begin at number `first`."""

    def spoil(self, tensor: Tensor, tally: Tensor) -> None:
        """Fill a buffer with a word that no copy carries, and begin its tally."""

    def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None:
        """Compare a buffer with the words that begin at number `first`."""

    def steps(self, count: int) -> int:
        """What a comparison of so many words has in the tally as its steps."""


class KernelPattern:
    """Our own kernels (`kernels/copy.cu`) on one of the GPUs that the process sees."""

    def __init__(self, index: int) -> None:
        self._kernels = Kernels("copy", index)
        self._blocks = _BLOCKS_EACH * self._kernels.multiprocessors

    def write(self, tensor: Tensor, first: int) -> None:
        """As the protocol says."""
        self._launch("write_words", tensor, ctypes.c_ulonglong(first))

    def spoil(self, tensor: Tensor, tally: Tensor) -> None:
        """As the protocol says."""
        self._launch("spoil", tensor, ctypes.c_ulonglong(SPOILED), ctypes.c_void_p(tally.data_ptr()))

    def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None:
        """As the protocol says."""
        words = (ctypes.c_ulonglong(first), ctypes.c_ulonglong(SPOILED))
        self._launch("verify", tensor, *words, ctypes.c_void_p(tally.data_ptr()))

    def steps(self, count: int) -> int:
        """Those of the first thread of each 32."""
        return steps(count * WORD, WORD, self._blocks, _THREADS, aligned=False)

    def _launch(self, name: str, tensor: Tensor, *more: ctypes.c_ulonglong | ctypes.c_void_p) -> None:
        buffer = (ctypes.c_void_p(tensor.data_ptr()), ctypes.c_ulonglong(tensor.numel()))
        self._kernels.launch(name, self._blocks, _THREADS, (*buffer, *more))
