"""The copies beside the burn on GPUs of the processor (`linked_gpus`), with the text of our own
kernels. tests/gpu has them on GPUs.
"""

from __future__ import annotations

import ctypes
import io
import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import cuda_on_cpu
import numpy as np
import pytest
from cases import each
from load_texts import values
from replay.linked_gpus import Machine, NumpyPattern, Tensor

from acceptance.core.parts import Gpu, Pair
from acceptance.loads import cubin
from acceptance.loads.burn import copies as burn_copies
from acceptance.loads.burn.copies import FIRST, LISTED, PAUSE_S, PLACES, Copies, KernelPattern
from acceptance.loads.copy import pattern as copy_pattern
from acceptance.loads.copy.pattern import SPOILED, first_of
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, Output, parse

PIECE = 8 * 1000
WORDS = PIECE // 8
TURNS = 12
Spoil = Callable[[Copies, int], None]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> cuda_on_cpu.Built:
    return cuda_on_cpu.shared(cubin.FOLDER / "copy.cu", tmp_path_factory)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burn_copies, "PIECE", PIECE)
    monkeypatch.setattr(burn_copies, "HOST_TURNS", 4)  # so that the words of the host come round


def kernels(machine: Machine, built: cuda_on_cpu.Built) -> type:
    """In the place of `cubin.Kernels`: the same text, queued on the current stream of the
    current device.
    """

    class Kernels:
        multiprocessors = 1

        def __init__(self, name: str, device: int) -> None:
            assert name == "copy"
            self._device = device

        def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
            assert machine.device == self._device
            work = machine.current[self._device].queue
            work.append(lambda: built.launch(name, blocks, threads, *arguments))

    return Kernels


def copied(
    machine: Machine,
    pattern: Callable[[int], Any],
    peers: Sequence[int] = (1,),
    spoil: Spoil | None = None,
) -> LoadOutput:
    """What the copies tell after TURNS turns of every path; `spoil` is called before each step."""
    stream, clock = io.StringIO(), itertools.count(0.0, 1.0)
    output = Output(stream)
    output.hello("burn", {})
    with machine.in_place():
        copies = Copies(output, pattern, peers, lambda: next(clock))
        for number in range(100_000):
            if spoil is not None:
                spoil(copies, number)
            copies.step()
            if min(path.pieces for path in (*copies._host, *copies._peers)) >= TURNS:
                break
        copies.finish()
    output.end()
    return parse(stream.getvalue())


@each("seed", range(8))
def test_clean_copies_raise_no_alarm_in_whatever_order_streams_run(seed: int) -> None:
    machine = Machine(3, seed=seed)
    found = values(output := copied(machine, lambda index: NumpyPattern(machine, index), (1, 2)))
    assert output.miscompares == ()
    assert found["burn_copied", Gpu(0)] >= 2 * TURNS * PIECE / 2**30
    assert found["burn_copy_miscompares", Gpu(0)] == 0
    for peer in (1, 2):
        assert found["burn_peer_copied", Pair(Gpu(0), Gpu(peer))] >= TURNS * PIECE / 2**30
        assert found["burn_peer_miscompares", Pair(Gpu(0), Gpu(peer))] == 0


def test_our_own_kernels_find_nothing_in_clean_copies(
    built: cuda_on_cpu.Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(2)
    monkeypatch.setattr(burn_copies, "Kernels", kernels(machine, built))
    assert copied(machine, KernelPattern).miscompares == ()


def test_a_round_trip_shows_nothing_where_a_window_leads_nowhere() -> None:
    # What the copies must not rely on, and did: the peer gives back what it never got.
    machine = Machine(2, lost={1})
    with machine.in_place():
        own, there, back = (
            machine.torch.empty(9, np.int64, f"cuda:{index}") for index in (0, 1, 0)
        )
        own.array[:] = range(9)
        back.copy_(there.copy_(own))
    assert back.array.tolist() == list(range(9))
    assert there.cpu().tolist() == [77] * 9


@pytest.mark.parametrize("kernel", [True, False], ids=["kernels", "numpy"])
def test_every_copy_that_a_peer_never_got_is_counted(
    built: cuda_on_cpu.Built, monkeypatch: pytest.MonkeyPatch, kernel: bool
) -> None:
    machine = Machine(3, lost={2})
    monkeypatch.setattr(burn_copies, "Kernels", kernels(machine, built))
    output = copied(
        machine, KernelPattern if kernel else lambda index: NumpyPattern(machine, index), (1, 2)
    )
    found = values(output)
    assert found["burn_peer_miscompares", Pair(Gpu(0), Gpu(1))] == 0
    assert found["burn_copy_miscompares", Gpu(0)] == 0
    pieces = found["burn_peer_copied", Pair(Gpu(0), Gpu(2))] * 2**30 / PIECE
    assert found["burn_peer_miscompares", Pair(Gpu(0), Gpu(2))] == pieces >= TURNS
    assert len(output.miscompares) == LISTED
    for told in output.miscompares:
        assert (told.check, told.component) == ("copy_p2p", Pair(Gpu(0), Gpu(2)))
        assert (told.words, told.unwritten, len(told.first)) == (WORDS, WORDS, FIRST)
        assert told.first[0].got == f"{SPOILED:016x}"
        assert told.first[0].xor == told.first[0].expected
    assert len({told.first[0].expected for told in output.miscompares}) == LISTED, (
        "each turn has its own words"
    )


@pytest.mark.parametrize("path", ["copy_h2d", "copy_d2h", "copy_p2p"])
def test_one_bit_that_changes_on_the_way_is_found(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, arrive = Machine(2), Tensor._arrive
    ways = {"copy_h2d": (-1, 0), "copy_d2h": (0, -1), "copy_p2p": (0, 1)}

    def changed(self: Tensor, other: Tensor) -> None:
        arrive(self, other)
        if (other.device, self.device) == ways[path] and self.numel() == WORDS:
            self.array[123] ^= 1 << 7

    monkeypatch.setattr(Tensor, "_arrive", changed)
    found = values(output := copied(machine, lambda index: NumpyPattern(machine, index)))
    assert {told.check for told in output.miscompares} == {path}
    for told in output.miscompares:
        assert (told.words, told.unwritten, told.first[0].word) == (1, 0, 123)
        assert told.first[0].xor == f"{1 << 7:016x}"
    name = "burn_peer_miscompares" if path == "copy_p2p" else "burn_copy_miscompares"
    assert found[name, Pair(Gpu(0), Gpu(1)) if path == "copy_p2p" else Gpu(0)] >= TURNS


@pytest.mark.parametrize("path", ["copy_h2d", "copy_d2h"])
def test_a_copy_that_is_not_made_shows_what_lay_there(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, arrive = Machine(2), Tensor._arrive
    ways = {"copy_h2d": (-1, 0), "copy_d2h": (0, -1)}

    def lost(self: Tensor, other: Tensor) -> None:
        # The words before the last are not carried; of those to the host the first copy gets
        # through.
        whole = self.numel() != WORDS or (other.device, self.device) != ways[path]
        if whole or (path == "copy_d2h" and not hasattr(self, "full")):
            self.full = True  # type: ignore[attr-defined]
            arrive(self, other)

    monkeypatch.setattr(Tensor, "_arrive", lost)
    output = copied(machine, lambda index: NumpyPattern(machine, index))
    assert {told.check for told in output.miscompares} == {path}
    first = output.miscompares[0]
    assert (first.words, first.unwritten) == (WORDS, WORDS)


def test_what_another_gpu_sent_is_wrong_in_every_word() -> None:
    # A window that leads to the wrong peer: gpu2's memory gets what is sent to gpu1, and gpu1's
    # what is sent to gpu2.
    machine, swapped = Machine(3), dict[int, Tensor]()

    def swap(copies: Copies, number: int) -> None:
        if number == 0:
            one, other = copies._peers
            swapped[1], swapped[2] = one._arrived, other._arrived
            one._carry, other._carry = _to(one, other._arrived), _to(other, one._arrived)  # type: ignore[method-assign]

    def _to(path: Any, elsewhere: Tensor) -> Callable[[], None]:
        carry, own = type(path)._carry, path._arrived

        def carried() -> None:
            path._arrived = elsewhere
            carry(path)
            path._arrived = own

        return carried

    output = copied(machine, lambda index: NumpyPattern(machine, index), (1, 2), swap)
    assert {told.component for told in output.miscompares} == {
        Pair(Gpu(0), Gpu(1)),
        Pair(Gpu(0), Gpu(2)),
    }
    assert {told.words for told in output.miscompares} == {WORDS}
    assert any(told.unwritten == 0 for told in output.miscompares)


def test_a_comparison_that_was_not_made_is_no_clean_copy() -> None:
    machine = Machine(2)

    class Idle(NumpyPattern):
        def verify(self, tensor: Tensor, first: int, tally: Tensor) -> None: ...

    with pytest.raises(LoadError, match=f"took 0 steps of {WORDS}: nothing was compared"):
        copied(machine, lambda index: Idle(machine, index))


def test_a_path_is_not_begun_again_before_its_time() -> None:
    machine = Machine(3)
    clock = iter(number / 100 for number in range(100_000))
    stream = io.StringIO()
    with machine.in_place():
        copies = Copies(
            Output(stream), lambda index: NumpyPattern(machine, index), (1, 2), lambda: next(clock)
        )
        for _ in range(2000):
            copies.step()
        spent_s = next(clock)
    h2d, d2h = copies._host
    assert 0.7 * spent_s / PAUSE_S < h2d.pieces <= spent_s / PAUSE_S + 1
    assert d2h.pieces > h2d.pieces
    assert all(path.pieces <= spent_s / (2 * PAUSE_S) + 1 for path in copies._peers)


# --- the kernels ---


class Buffers:
    """Words and a tally, as the kernels take them."""

    def __init__(self, count: int) -> None:
        self.words, self.tally = np.full(count, 77, np.uint64), np.full(PLACES, 99, np.uint64)

    def arguments(self, *more: int) -> list[Any]:
        place = ctypes.c_void_p(self.words.ctypes.data)
        return [place, ctypes.c_ulonglong(self.words.size), *map(ctypes.c_ulonglong, more)]

    @property
    def into(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.tally.ctypes.data)


@each("count", [1, 31, 256, 257, 5000])
def test_the_kernels_make_the_words_of_the_processor(built: cuda_on_cpu.Built, count: int) -> None:
    for first in (first_of("GPU-a", "GPU-b", 5), (1 << 64) - count, 1 << 40):
        made, expected = Buffers(count), np.empty(count, np.uint64)
        copy_pattern.write(expected, first)
        built.launch("write_words", 2, 64, *made.arguments(first))
        assert (made.words == expected).all()


@each("count", [1, 31, 256, 257, 5000])
def test_the_kernel_counts_what_differs_and_what_was_not_written(
    built: cuda_on_cpu.Built, count: int
) -> None:
    first, made = first_of("GPU-a", "GPU-b", 5), Buffers(count)
    own = SimpleNamespace(multiprocessors=1)
    due = KernelPattern.steps(SimpleNamespace(_kernels=own, _blocks=2), count)  # type: ignore[arg-type]
    built.launch("spoil", 2, 256, *made.arguments(SPOILED), made.into)
    assert (made.words == SPOILED).all()
    assert made.tally.tolist() == [0] * PLACES
    built.launch("verify", 2, 256, *made.arguments(first, SPOILED), made.into)
    assert made.tally.tolist() == [count, count, due]
    copy_pattern.write(made.words, first)
    made.words[-1] ^= np.uint64(1 << 63)
    made.words[count // 2] = SPOILED
    made.tally[:] = 0
    built.launch("verify", 2, 256, *made.arguments(first, SPOILED), made.into)
    assert made.tally.tolist() == [len({count - 1, count // 2}), 1, due]
