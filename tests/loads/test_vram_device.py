from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest
from cases import each
from cuda_on_cpu import Built
from raising import raising
from vram_on_cpu import Gpu

from acceptance.loads.program import LoadError
from acceptance.loads.vram import device as vram_device
from acceptance.loads.vram import passes
from acceptance.loads.vram.device import CudaMemory, usable, wait
from acceptance.loads.vram.passes import TILE, Copy, Pass, Spin, Sweep, Words

KERNELS = "vram"
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc` here")
WORDS = 20 * TILE
NUMBER = Words("number")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def gpu(built: Built, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    one = Gpu(built, WORDS)
    monkeypatch.setitem(sys.modules, "torch", one.torch)
    monkeypatch.setattr(vram_device, "Kernels", one.kernels)
    return one


def test_a_gpu_that_answers_is_waited_for_and_one_that_does_not_is_given_up() -> None:
    clock = Clock()
    answers = iter([False] * 1000 + [True])
    wait(lambda: next(answers), clock, clock.sleep)
    assert clock.now == pytest.approx(0.2)
    with pytest.raises(
        LoadError, match=r"^the GPU did not finish a pass over its memory within 60 s: it hangs$"
    ):
        wait(lambda: False, clock, clock.sleep)
    assert clock.now == pytest.approx(60.2, abs=0.01)


@each(
    "gib, least",
    [(15.0, 0.99), (23.5, 0.99), (139.0, 0.999)],
)
def test_the_reserve_leaves_enough(gib: float, least: float) -> None:
    free = int(gib * 2**30)
    words = usable(free, vram_device.RESERVES[0])
    assert words % TILE == 0
    assert least <= words * 8 / free < 1
    assert free - words * 8 >= 128 << 20
    assert usable(1000, 128 << 20) == 0


@needs_cc
def test_less_is_taken_where_the_driver_has_no_piece_that_large(gpu: Gpu) -> None:
    gpu.refused = 1
    memory = CudaMemory()
    assert memory.words == 0  # the test's GPU has only 320 KiB more than the first reserve
    gpu.torch.cuda.mem_get_info = lambda: ((256 << 20) + 8 * WORDS, 1 << 30)
    gpu.refused = 0
    assert CudaMemory().words == (128 << 20) // 8 + WORDS


@needs_cc
def test_where_there_is_no_piece_at_all(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = gpu.empty

    def refuse(words: int, dtype: object, device: str) -> object:
        if words == passes.RECORD:
            return empty(words, dtype, device)
        raise gpu.torch.cuda.OutOfMemoryError("out of memory")

    monkeypatch.setattr(gpu.torch, "empty", refuse)
    with pytest.raises(
        LoadError, match=r"0\.13 GiB of the GPU's memory are free and cannot be had in one piece"
    ):
        CudaMemory()


@needs_cc
def test_a_pass_is_timed_and_each_has_a_record_of_its_own(gpu: Gpu) -> None:
    memory = CudaMemory()
    filled = memory.work(Pass((Sweep(None, NUMBER, 0, WORDS),)))
    assert (filled.record.seen, filled.record.wrong) == (WORDS, 0)
    assert filled.seconds == pytest.approx(8 * WORDS / 1e9)
    memory.put(5, 1 << 63 | 5)
    assert memory.get(5) == 1 << 63 | 5
    verify = Pass((Sweep(NUMBER, None, 0, WORDS),))
    assert memory.work(verify).record.wrong == 1
    memory.put(5, 5)
    assert memory.work(verify).record.wrong == 0
    assert memory.work(Pass((Copy(0, 10 * TILE, 10 * TILE),))).record.seen == 0
    assert memory.get(15 * TILE + 1) == 5 * TILE + 1
    assert gpu.intact()


@needs_cc
def test_time_before_the_work_counts_where_it_is_late(gpu: Gpu) -> None:
    def sleep(seconds: float) -> None:
        gpu.clock += seconds

    late = CudaMemory(sleep=sleep).work(Pass((Sweep(None, NUMBER, 0, WORDS),)), 3.0)
    assert late.seconds == pytest.approx(3.0 + 8 * WORDS / 1e9)


@needs_cc
def test_a_gpu_that_hangs_in_the_midst_of_many_works(gpu: Gpu) -> None:
    clock = Clock()
    memory = CudaMemory(clock, clock.sleep)
    sweep = Sweep(None, NUMBER, 0, TILE)
    asked = gpu.asked
    memory.work(Pass((sweep,) * 1000))
    assert gpu.asked - asked == 7, "1000 works are seen to be done on the way"
    with pytest.raises(LoadError, match="it hangs"):
        memory.work(Pass((Spin(), *(sweep,) * 100000)))
    assert len(gpu.launched) < 1000 + 400


@needs_cc
def test_a_late_error_of_cuda_is_passed_on(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = CudaMemory()

    monkeypatch.setattr(
        gpu.torch.cuda.Event,
        "query",
        raising(RuntimeError("CUDA error: an illegal memory access was encountered")),
    )
    with pytest.raises(RuntimeError, match="illegal memory access"):
        memory.work(Pass((Sweep(None, NUMBER, 0, WORDS),)))
    assert np.array_equal([memory.get(7)], [7])
