"""Copies over the GPU's links beside the products, every byte compared at the destination.

Needs torch.
"""

from __future__ import annotations

import ctypes
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypedDict

import numpy as np

from acceptance.core.parts import Component, Gpu, Pair
from acceptance.loads import bits
from acceptance.loads.burn.compare import steps
from acceptance.loads.burn.shape import BackgroundCopies
from acceptance.loads.card import Kernels, uuid, wait
from acceptance.loads.contract import OWN
from acceptance.loads.copy import pattern as copy_pattern
from acceptance.loads.copy.pattern import SPOILED, WORD, Words, first_of
from acceptance.loads.gemm.product import Tensor
from acceptance.loads.miscompare import (
    COPY_MISCOMPARES,
    PEER_MISCOMPARES,
    CopiedWord,
    CopyCheck,
    WrongCopy,
)
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output

PIECE = 64 << 20
LISTED = 8
FIRST = 4  # wrong words of a copy that are listed
HOST_TURNS = 1024  # turns after which the words between host and GPU repeat
HOST_STEP = 512  # offset between two turns, in words: a page
# Pause between two turns of a path on which a GPU compares. Kernels of the same process run beside
# the products at this rate. Kernels of other processes on a peer take their time entirely from the
# peer's products, so with several peers each is copied to half as often.
PAUSE_S = 0.1


class HostWords:
    """Words in pinned host memory; each turn's piece begins a page further on."""

    def __init__(self, first: int) -> None:
        import torch

        self._first = first
        count = PIECE // WORD + HOST_STEP * (HOST_TURNS - 1)
        self._words = torch.empty(count, dtype=torch.int64, pin_memory=True)
        copy_pattern.write(_array(self._words), first)

    def number(self, turn: int) -> int:
        """The sequence number of a turn's first word."""
        return self._first + HOST_STEP * (turn % HOST_TURNS)

    def piece(self, turn: int) -> Tensor:
        """The words of a turn."""
        begin = HOST_STEP * (turn % HOST_TURNS)
        return self._words[begin : begin + PIECE // WORD]


class CopyPath(ABC):
    """One copy path, which begins again once its piece is compared, at most every `pause_s` s."""

    def __init__(
        self, check: CopyCheck, component: Component, pause_s: float, turn: int = 0
    ) -> None:
        self.check, self.component, self.pause_s, self.turn = check, component, pause_s, turn
        self.pieces = self.wrong = 0
        self._next_s = float("-inf")
        self._done: Any = None

    @property
    def busy(self) -> bool:
        """Whether a piece is being copied or compared."""
        return self._done is not None

    def begin(self, now_s: float) -> None:
        """Queue the copy of one piece, unless `pause_s` has not yet passed."""
        if now_s >= self._next_s:
            self._next_s = now_s + self.pause_s
            self.turn += 1
            self._done = self._queue()

    def poll(self) -> bool:
        """Whether the comparison of a piece has just ended with a difference; never waits.

        Raises LoadError where the GPU did not compare the whole piece.
        """
        if self._done is None or not self._done.query():
            return False
        self._done = None
        wrong = self._differs()
        self.pieces += 1
        return wrong

    @abstractmethod
    def describe(self) -> CopyDifferences:
        """How the last compared piece differs."""

    @abstractmethod
    def _queue(self) -> Any:
        """Queue all work of a turn; returns an event recorded after it."""

    @abstractmethod
    def _differs(self) -> bool:
        """Whether the piece of this turn, which has arrived, is wrong."""


class HostBoundPath(CopyPath):
    """From GPU 0, which writes the words anew each turn, to pinned memory.

    The host compares the piece with words that it made itself.
    """

    def __init__(self, host: HostWords, pattern: Pattern) -> None:
        import torch

        # half the cycle away from the words that go to the GPU
        super().__init__("copy_d2h", OWN, 0.0, HOST_TURNS // 2)
        self._host, self._pattern = host, pattern
        self._stream = torch.cuda.Stream(device=0)
        self._own = torch.empty(PIECE // WORD, dtype=torch.int64, device="cuda:0")
        self._arrived = torch.empty(PIECE // WORD, dtype=torch.int64, pin_memory=True)
        self._arrived.copy_(host.piece(self.turn))

    def _queue(self) -> Any:
        import torch

        with torch.cuda.stream(self._stream):
            self._pattern.write(self._own, self._host.number(self.turn))
            self._arrived.copy_(self._own, non_blocking=True)
            return _recorded(self._stream)

    def _differs(self) -> bool:
        return not bits.same_bits(_array(self._host.piece(self.turn)), _array(self._arrived))

    def describe(self) -> CopyDifferences:
        """The differences in host memory, where the previous turn left its own words."""
        before = _array(self._host.piece(self.turn - 1))
        return differences(_array(self._host.piece(self.turn)), _array(self._arrived), before)


class GpuBoundPath(CopyPath):
    """A path to a GPU, which overwrites its buffer before each copy and compares it afterwards."""

    def __init__(
        self, check: CopyCheck, component: Component, pause_s: float, pattern: Pattern, index: int
    ) -> None:
        import torch

        super().__init__(check, component, pause_s)
        self._pattern = pattern
        self._stream = torch.cuda.Stream(device=index)
        self._arrived = torch.empty(PIECE // WORD, dtype=torch.int64, device=f"cuda:{index}")
        self._tally = torch.empty(PLACES, dtype=torch.int64, device=f"cuda:{index}")
        self._found = torch.empty(PLACES, dtype=torch.int64, pin_memory=True)

    @abstractmethod
    def _first(self) -> int:
        """The sequence number of this turn's first word."""

    @abstractmethod
    def _carry(self) -> None:
        """Queue the copy, between the spoiling and the comparison in the GPU's stream."""

    def _queue(self) -> Any:
        import torch

        self._found.fill_(-1)  # -1 is never a valid count
        with torch.cuda.stream(self._stream):
            self._pattern.spoil(self._arrived, self._tally)
            self._carry()
            self._pattern.verify(self._arrived, self._first(), self._tally)
            self._found.copy_(self._tally, non_blocking=True)
            return _recorded(self._stream)

    def _differs(self) -> bool:
        wrong, _, steps = self._found.tolist()
        due = self._pattern.steps(PIECE // WORD)
        if steps != due:
            raise LoadError(
                f"the kernel that compares copies took {steps} steps of {due}: nothing was "
                "compared by it"
            )
        return bool(wrong)

    def describe(self) -> CopyDifferences:
        """The GPU's own counts, and the differences in its buffer.

        The buffer is read back over that GPU's own link to the host.
        """
        import torch

        with torch.cuda.stream(self._stream):
            got = _array(self._arrived.cpu())
        expected = np.empty(got.size, np.uint64)
        copy_pattern.write(expected, self._first())
        wrong, unwritten, _ = self._found.tolist()
        return {
            **differences(expected, got, np.full(1, SPOILED, np.uint64)),
            "words": int(wrong),
            "unwritten": int(unwritten),
        }


class HostToGpuPath(GpuBoundPath):
    """From pinned memory of the host to GPU 0."""

    def __init__(self, host: HostWords, pattern: Pattern) -> None:
        super().__init__("copy_h2d", OWN, PAUSE_S, pattern, 0)
        self._host = host

    def _first(self) -> int:
        return self._host.number(self.turn)

    def _carry(self) -> None:
        self._arrived.copy_(self._host.piece(self.turn), non_blocking=True)


class PeerPath(GpuBoundPath):
    """From GPU 0, which writes the words, to the GPU `peer`, which compares them with `theirs`."""

    def __init__(self, pattern: Pattern, theirs: Pattern, peer: int, pause_s: float) -> None:
        import torch

        super().__init__("copy_p2p", Pair(OWN, Gpu(peer)), pause_s, theirs, peer)
        self._uuids = uuid(0), uuid(peer)
        self._writing = pattern
        self._home = torch.cuda.Stream(device=0)
        self._own = torch.empty(PIECE // WORD, dtype=torch.int64, device="cuda:0")

    def _first(self) -> int:
        return first_of(*self._uuids, self.turn)

    def _carry(self) -> None:
        import torch

        spoiled = _recorded(self._stream)
        with torch.cuda.stream(self._home):
            self._writing.write(self._own, self._first())
            self._home.wait_event(spoiled)
            self._arrived.copy_(self._own, non_blocking=True)
            arrived = _recorded(self._home)
        self._stream.wait_event(arrived)


class Copies(BackgroundCopies):
    """All copies of one GPU, served between groups of products.

    `pattern` gives the words of a GPU by its index.
    """

    def __init__(
        self,
        output: Output,
        pattern: Callable[[int], Pattern],
        peers: Sequence[int],
        boot_s: Callable[[], float],
    ) -> None:
        import torch

        self._output, self._boot_s = output, boot_s
        own, host = pattern(0), HostWords(first_of("host", uuid(0), 0))
        self._host = [HostToGpuPath(host, own), HostBoundPath(host, own)]
        pause_s = PAUSE_S * min(len(peers), 2)
        self._peers = [PeerPath(own, pattern(peer), peer, pause_s) for peer in peers]
        # The first turn loads the kernels and opens the paths to the peers. That takes memory, and
        # would delay products later.
        for path in (*self._host, *self._peers):
            path.begin(boot_s())
        for index in (0, *peers):
            torch.cuda.synchronize(index)

    def step(self) -> None:
        """Poll every path, and begin again those that are done; never waits for a copy."""
        for path in (*self._host, *self._peers):
            self._poll(path)
            if not path.busy:
                path.begin(self._boot_s())

    def _poll(self, path: CopyPath) -> None:
        if path.poll():
            path.wrong += 1
            if path.wrong <= LISTED:
                self._output.miscompare(
                    WrongCopy(
                        component=path.component,
                        check=path.check,
                        found_s=self._boot_s(),
                        **path.describe(),
                    )
                )

    def _is_finished(self, path: CopyPath) -> bool:
        """Poll a path; whether nothing of it is in flight any more."""
        self._poll(path)
        return not path.busy

    def finish(self) -> None:
        """Wait for the copies in flight, and report what was copied and how many copies were wrong.

        Raises LoadError where the GPU hangs.
        """
        for path in (*self._host, *self._peers):
            wait(functools.partial(self._is_finished, path))
        # The minimum over the directions: a link that carried nothing one way is not covered by the
        # other direction.
        least = len(self._host) * min(path.pieces for path in self._host)
        self._output.reading("burn_copied", "GiB", OWN, least * PIECE / 2**30)
        wrong = sum(path.wrong for path in self._host)
        self._output.reading(COPY_MISCOMPARES, "count", OWN, wrong)
        for path in self._peers:
            self._output.reading(
                "burn_peer_copied", "GiB", path.component, path.pieces * PIECE / 2**30
            )
            self._output.reading(PEER_MISCOMPARES, "count", path.component, path.wrong)


class CopyDifferences(TypedDict):
    """How the piece of a `WrongCopy` differs."""

    words: int
    unwritten: int
    first: tuple[CopiedWord, ...]


def differences(expected: Words, got: Words, before: Words) -> CopyDifferences:
    """How a piece differs.

    The number of wrong words, how many of these equal what lay there `before`, and the first few.
    """
    wrong = np.flatnonzero(expected != got)
    unwritten = np.count_nonzero(np.broadcast_to(before, got.shape)[wrong] == got[wrong])
    first = tuple(
        CopiedWord(
            word=int(place),
            expected=f"{due:016x}",
            got=f"{found:016x}",
            xor=f"{due ^ found:016x}",
        )
        for place in wrong[:FIRST]
        for due, found in [(int(expected[place]), int(got[place]))]
    )
    return {"words": len(wrong), "unwritten": int(unwritten), "first": first}


def _array(tensor: Tensor) -> Words:
    """The words of a host tensor, without a copy."""
    found: Words = tensor.numpy().view(np.uint64)
    return found


def _recorded(stream: Any) -> Any:
    """An event recorded after all work queued on a stream so far."""
    import torch

    event = torch.cuda.Event()
    event.record(stream)
    return event


PLACES = 3  # numbers in a tally, as the kernels have it
_THREADS = 256
_BLOCKS_EACH = 8


class Pattern(Protocol):
    """The words on one GPU. A tally is a tensor of PLACES numbers on that GPU, for one buffer."""

    def write(self, tensor: Tensor, first: int) -> None:
        """Fill a buffer with the words from sequence number `first` on."""

    def spoil(self, tensor: Tensor, tally: Tensor) -> None:
        """Fill a buffer with a word that no copy carries, and reset its tally."""

    def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None:
        """Compare a buffer with the words from sequence number `first` on."""

    def steps(self, count: int) -> int:
        """The step count that a comparison of `count` words leaves in the tally."""


class KernelPattern:
    """Our own kernels (`kernels/copy.cu`) on one of the visible GPUs."""

    def __init__(self, index: int) -> None:
        self._kernels = Kernels("copy", index)
        self._blocks = _BLOCKS_EACH * self._kernels.multiprocessors

    def write(self, tensor: Tensor, first: int) -> None:
        """Implements `Pattern`."""
        self._launch("write_words", tensor, ctypes.c_ulonglong(first))

    def spoil(self, tensor: Tensor, tally: Tensor) -> None:
        """Implements `Pattern`."""
        self._launch(
            "spoil", tensor, ctypes.c_ulonglong(SPOILED), ctypes.c_void_p(tally.data_ptr())
        )

    def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None:
        """Implements `Pattern`."""
        words = (ctypes.c_ulonglong(first), ctypes.c_ulonglong(SPOILED))
        self._launch("verify", tensor, *words, ctypes.c_void_p(tally.data_ptr()))

    def steps(self, count: int) -> int:
        """Steps of the first thread of each warp of 32."""
        return steps(count * WORD, WORD, self._blocks, _THREADS, aligned=False)

    def _launch(
        self, name: str, tensor: Tensor, *more: ctypes.c_ulonglong | ctypes.c_void_p
    ) -> None:
        buffer = (ctypes.c_void_p(tensor.data_ptr()), ctypes.c_ulonglong(tensor.numel()))
        self._kernels.launch(name, self._blocks, _THREADS, (*buffer, *more))
