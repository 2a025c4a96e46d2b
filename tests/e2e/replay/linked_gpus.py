"""GPUs and the links between them, on the processor: as much of torch as the copies beside the burn
use, on numpy.

What a stream is given is done later, in any order that streams and events allow, as a random
generator has it: work that is not put in order by events goes wrong sooner or later. A GPU in
`lost` has a window that leads nowhere: what another GPU writes into its memory is kept beside it,
and given back to the GPU that reads there. Its own kernels, and its own link to the host, see what
really lies there.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptance.loads.copy.pattern import SPOILED
from acceptance.loads.exact_product import spread

Words = NDArray[Any]
HOST = -1


class Event:
    """Reached when the stream that it was recorded in comes to it; one that was never recorded
    holds nobody up.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine, self.reached = machine, True

    def record(self, stream: Stream) -> None:
        self.reached = False
        stream.queue.append(self)

    def query(self) -> bool:
        self._machine.go_on()
        return self.reached


class Stream:
    """Work of one GPU, in order: what is done, an event that is reached, or one that is waited
    for (in a tuple).
    """

    def __init__(self, machine: Machine, device: int) -> None:
        self.device = device
        self.queue: deque[Callable[[], None] | Event | tuple[Event]] = deque()
        machine.streams.append(self)

    def wait_event(self, event: Event) -> None:
        self.queue.append((event,))

    @property
    def ready(self) -> bool:
        return bool(self.queue) and (
            not isinstance(self.queue[0], tuple) or self.queue[0][0].reached
        )

    def take(self) -> None:
        work = self.queue.popleft()
        if isinstance(work, Event):
            work.reached = True
        elif not isinstance(work, tuple):
            work()


class Tensor:
    """Words on the host or on a GPU.

    `window` is what other GPUs wrote here, where their writes are lost.
    """

    def __init__(self, machine: Machine, array: Words, device: int) -> None:
        self._machine, self.array, self.device = machine, array, device
        self.window: Words | None = None

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Tensor:
        """On the source's GPU, or on that of the destination where the source is the host."""
        gpu = other.device if other.device != HOST else self.device
        if gpu == HOST:
            self.array[:] = other.array
            return self
        stream = self._machine.current[gpu]
        stream.queue.append(lambda: self._arrive(other))
        if not non_blocking:
            self._machine.drain([stream])
        return self

    def _arrive(self, other: Tensor) -> None:
        foreign = HOST not in (self.device, other.device) and self.device != other.device
        sent = other.window if foreign and other.window is not None else other.array
        if foreign and self.device in self._machine.lost:
            self.window = sent.copy()
        else:
            self.array[:] = sent

    def cpu(self) -> Tensor:
        return Tensor(self._machine, np.zeros_like(self.array), HOST).copy_(self)

    def fill_(self, value: int) -> None:
        assert self.device == HOST
        self.array.fill(value)

    def numpy(self) -> Words:
        assert self.device == HOST
        return self.array

    def tolist(self) -> list[int]:
        assert self.device == HOST
        return [int(word) for word in self.array]

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def numel(self) -> int:
        return int(self.array.size)

    def __getitem__(self, places: slice) -> Tensor:
        return Tensor(self._machine, self.array[places], self.device)


class Machine:
    """So many GPUs, of which those in `lost` never get what the others send them.

    `torch` stands in for the module.
    """

    def __init__(self, gpus: int, lost: Collection[int] = (), seed: int = 0) -> None:
        self.lost, self._chance = frozenset(lost), random.Random(seed)
        self.streams: list[Stream] = []
        self.device = 0
        self.current = {index: Stream(self, index) for index in range(gpus)}
        cuda = SimpleNamespace(
            Event=lambda: Event(self),
            Stream=lambda device=0: Stream(self, device),
            stream=self._stream,
            synchronize=lambda index=0: self.drain(
                [one for one in self.streams if one.device == index]
            ),
            get_device_properties=lambda index: SimpleNamespace(
                uuid=f"{index:08x}-0000-4000-8000-000000000000"
            ),
        )
        self.torch = SimpleNamespace(int64=np.int64, empty=self._empty, cuda=cuda)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Stand in for torch."""
        real = sys.modules.get("torch")
        sys.modules["torch"] = self.torch  # type: ignore[assignment]
        try:
            yield
        finally:
            if real is None:
                del sys.modules["torch"]
            else:
                sys.modules["torch"] = real

    def go_on(self) -> None:
        """Do a little of what can be done."""
        for _ in range(self._chance.randrange(4)):
            if ready := [one for one in self.streams if one.ready]:
                self._chance.choice(ready).take()

    def drain(self, streams: list[Stream]) -> None:
        """Go on until these streams have done everything."""
        while any(one.queue for one in streams):
            self._chance.choice([one for one in self.streams if one.ready]).take()

    def _empty(
        self, count: int, dtype: type, device: str = "cpu", pin_memory: bool = False
    ) -> Tensor:
        index = HOST if device == "cpu" else int(device.removeprefix("cuda:"))
        return Tensor(self, np.full(count, 77, dtype), index)

    @contextlib.contextmanager
    def _stream(self, stream: Stream) -> Iterator[None]:
        before, device = self.current[stream.device], self.device
        self.current[stream.device], self.device = stream, stream.device
        try:
            yield
        finally:
            self.current[stream.device], self.device = before, device


class NumpyPattern:
    """The words of copies on one GPU, made and compared by numpy."""

    def __init__(self, machine: Machine, index: int) -> None:
        self._machine, self._index = machine, index

    def write(self, tensor: Tensor, first: int) -> None:
        self._queue(tensor, lambda words: words.__setitem__(slice(None), spread(words.size, first)))

    def spoil(self, tensor: Tensor, tally: Tensor) -> None:
        self._queue(tensor, lambda words: (words.fill(SPOILED), tally.array.fill(0)))

    def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None:
        def compared(words: Words) -> None:
            wrong = words != spread(words.size, first)
            tally.array[:] = wrong.sum(), (wrong & (words == SPOILED)).sum(), words.size

        self._queue(tensor, compared)

    def steps(self, count: int) -> int:
        return count

    def _queue(self, tensor: Tensor, work: Callable[[Words], object]) -> None:
        assert tensor.device == self._index == self._machine.device
        self._machine.current[self._index].queue.append(
            lambda: work(tensor.array.view(np.uint64)) and None
        )
