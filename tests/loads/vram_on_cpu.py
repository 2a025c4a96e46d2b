"""The memory load's GPU on the processor: as much of torch as `loads.vram.device` uses, numpy
arrays for memory, kernels built by `cc`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from cuda_on_cpu import Built
from numpy.typing import NDArray

from acceptance.loads.vram.passes import _ADDED, _FIRST, _SECOND, _THIRD, Words

WHOLE = 1 << 30  # bytes that the GPU has
GB_S = 1e9  # what moves through it in a second of its own clock


class Tensor:
    """A tensor of int64."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __getitem__(self, places: slice | int) -> Any:
        return Tensor(self.array[places]) if isinstance(places, slice) else int(self.array[places])

    def copy_(self, other: Tensor, non_blocking: bool = False) -> None:
        if non_blocking:  # one inside the memory
            assert not np.shares_memory(self.array, other.array)
            Gpu.now.clock += 2 * self.array.nbytes / GB_S
        assert self.array.size == other.array.size
        self.array[:] = other.array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def numel(self) -> int:
        return int(self.array.size)

    def tolist(self) -> list[int]:
        return [int(word) for word in self.array]


class Event:
    """An event of the GPU's own clock; it has come as soon as it is recorded,
    unless the GPU hangs.
    """

    def __init__(self, enable_timing: bool = False) -> None:
        self.timed = enable_timing
        self.at = 0.0

    def record(self) -> None:
        self.at = Gpu.now.clock

    def query(self) -> bool:
        Gpu.now.asked += 1
        return not Gpu.now.hangs

    def elapsed_time(self, end: Event) -> float:
        assert self.timed
        assert end.timed
        return (end.at - self.at) * 1e3


class Gpu:
    """What the fake torch, its kernels and a test share. `words` are free, besides the reserve."""

    now: Gpu

    def __init__(self, built: Built, words: int, refused: int = 0) -> None:
        Gpu.now = self
        self.built, self.words, self.refused = built, words, refused
        self.clock, self.asked, self.hangs = 0.0, 0, False
        self.launched: list[str] = []
        self.given: Tensor
        self.guards: list[np.ndarray[Any, Any]] = []
        self.torch: Any = ModuleType("torch")
        self.torch.int64 = np.int64
        self.torch.empty = self.empty
        self.torch.frombuffer = lambda buffer, dtype: Tensor(np.frombuffer(buffer, dtype))
        self.torch.cuda = SimpleNamespace(
            Event=Event,
            OutOfMemoryError=type("OutOfMemoryError", (RuntimeError,), {}),
            empty_cache=lambda: None,
            mem_get_info=lambda: ((128 << 20) + 8 * words, WHOLE),
        )

    def empty(self, words: int, dtype: Any, device: str) -> Tensor:
        """Memory with a guard before and behind it, at an address as CUDA gives it out."""
        assert (dtype, device) == (np.int64, "cuda")
        if words == self.words and self.refused:
            self.refused -= 1
            raise self.torch.cuda.OutOfMemoryError("out of memory")
        room = np.full(words + 128, 0x5A5A, np.int64)
        first = 32 + -room.ctypes.data % 256 // 8
        self.guards += [room[:first], room[first + words :]]
        room[first : first + words] = 0
        self.given = Tensor(room[first : first + words])
        return self.given

    def intact(self) -> bool:
        """Whether nothing was written beside the memory that was given out."""
        return all(bool((guard == 0x5A5A).all()) for guard in self.guards)

    def kernels(self, name: str) -> Any:
        """In the place of `cubin.Kernels`."""
        assert name == "vram"
        return SimpleNamespace(multiprocessors=1, launch=self.launch)

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        self.launched.append(name)
        if name == "spin":
            self.hangs = True
            return
        self.built.launch(name, blocks, threads, *arguments)
        sweep = arguments[2]
        passes = 2 if name.startswith("turn") else 1
        self.clock += passes * 8 * (sweep.tiles * 2048 + sweep.rest) / GB_S


def words(tensor: Any) -> np.ndarray[Any, Any]:
    """The words of a memory as they lie there."""
    array: np.ndarray[Any, Any] = tensor.array.view(np.uint64)
    return array


def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    """What a kernel is given of an array."""
    return ctypes.c_void_p(array.ctypes.data)


def array(words: Words, first: int, count: int) -> NDArray[np.uint64]:
    """The words of `count` numbers from `first` on, by numpy."""
    numbers = np.arange(count, dtype=np.uint64) + np.uint64(first)
    return _many(words.family, numbers, words.seed) ^ np.uint64(words.mask)


def _many(family: str, numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    half = np.uint64(32)
    if family == "number":
        return numbers
    if family == "constant":
        return np.zeros_like(numbers)
    if family == "walk":
        return np.uint64(1) << ((numbers + np.uint64(seed)) & np.uint64(63))
    mixed = (numbers >> np.uint64(1)) * np.uint64(_FIRST) + np.uint64(seed)
    mixed = (mixed ^ mixed >> half) * np.uint64(_SECOND)
    even = mixed ^ mixed >> half
    odd = (even << half | even >> half) * np.uint64(_THIRD) + np.uint64(_ADDED)
    return np.where(numbers & np.uint64(1), odd ^ odd >> half, even)
