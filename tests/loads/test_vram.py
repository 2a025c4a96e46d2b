"""The memory load as a program, with the kernels built for the processor as its device."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import written
from cuda_on_cpu import Built
from load_texts import by_name
from thoroughness import examples
from vram_on_cpu import WHOLE, Gpu

from acceptance.loads.__main__ import main
from acceptance.loads.protocol import LoadOutput, ProtocolError, parse, salvage
from acceptance.loads.vram import device, load
from acceptance.loads.vram.device import CudaMemory
from acceptance.loads.vram.load import FLIPPED, STUCK, partner
from acceptance.loads.vram.passes import TILE
from acceptance.loads.vram.patterns import PATTERNS
from acceptance.loads.vram.worker import LINES, VramWorker

KERNELS = "vram"
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler `cc` here")
CARD = {"gpu": "a GPU", "uuid": "GPU-1", "capability": "9.0", "library": "torch 2"}
WORDS = 37 * TILE
PLACE = WORDS // 3
LOAD = ("vram", "seconds=0.01")


Start = Callable[..., Gpu]


@pytest.fixture
def start(built: Built, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Give the process a GPU with so many words free."""

    def begin(words: int = WORDS, refused: int = 0) -> Gpu:
        gpu = Gpu(built, words, refused)
        monkeypatch.setitem(sys.modules, "torch", gpu.torch)
        monkeypatch.setattr(device, "Kernels", gpu.kernels)
        monkeypatch.setattr(load, "gpu_identity", lambda: dict(CARD))
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        monkeypatch.setattr(load, "VramWorker", partial(VramWorker, sleep=lambda _: None))
        return gpu

    return begin


def ran(capsys: pytest.CaptureFixture[str], *extra: str) -> LoadOutput:
    assert main([*LOAD, *extra]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return parse(captured.out)


@needs_cc
def test_a_sound_memory(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    gpu = start()
    output = ran(capsys)
    assert "PYTORCH_CUDA_ALLOC_CONF" not in os.environ
    assert output.load == "vram"
    assert output.parameters == {"seconds": 0.01, **CARD}
    assert output.injected is None
    assert by_name(output) == {
        "vram_tested": 8 * WORDS / WHOLE,
        "vram_rate": pytest.approx(1.0),
        "vram_copy": pytest.approx(1.0),
        "vram_miscompares": 0,
    }
    assert output.miscompares == ()
    assert [table.name for table in output.tables] == ["vram_passes"]
    assert output.notes[0].startswith(
        "0.00 GiB are tested, of 0.13 GiB that were free and 1.00 GiB in all"
    )
    assert gpu.intact()
    assert {
        f"{mode}_{family}"
        for mode in ("fill", "verify", "turn")
        for family in ("number", "walk", "random")
    } <= set(gpu.launched)


@needs_cc
def test_many_rounds_without_a_false_alarm(start: Start) -> None:
    rounds = examples(100)
    gpu = start(6 * TILE)
    memory = CudaMemory()

    def clock() -> float:
        """Stands still until one round more has begun."""
        return 0.0 if gpu.launched.count("fill_number") <= rounds else 1e9

    found = written.ran(
        "vram", lambda output: VramWorker(1.0, memory, output, clock, lambda _: None).run()
    )
    assert any(f"{rounds} whole rounds" in note for note in found.notes)
    assert by_name(found)["vram_miscompares"] == 0
    assert found.miscompares == ()
    assert gpu.intact()


@needs_cc
@pytest.mark.parametrize("kind", ["bit", "stuck", "address"])
@pytest.mark.parametrize("words", [WORDS, 64 * TILE, 5 * TILE, 4 * TILE, 63 * TILE])
def test_a_fault_is_found_and_located_whatever_the_size(
    start: Start, capsys: pytest.CaptureFixture[str], kind: str, words: int
) -> None:
    start(words)
    output = ran(capsys, f"inject={kind}")
    place, found = words // 3, output.miscompares
    assert output.injected == kind
    assert by_name(output)["vram_miscompares"] == sum(one.words for one in found) >= 1
    rows = next(table for table in output.tables if table.name == "vram_map").rows
    assert sum(float(row[2]) for row in rows) == by_name(output)["vram_miscompares"]
    told = {one.pattern: one.address_bits for one in found if one.address_bits}
    if kind == "address":  # says which line it is
        other = partner(place, words)
        assert told.keys() >= {"own_address", "random_inverse"}
        assert {*told.values()} == {(int(math.log2(place ^ other)) + 3,)}
        in_random = next(one for one in found if one.pattern == "random_inverse")
        assert {one.address for one in in_random.first} == {8 * place, 8 * other}
        return
    assert told == {}
    bit = FLIPPED if kind == "bit" else STUCK
    assert all(one.bits == {bit: one.words} for one in found)
    at = [one.first for one in found if one.pattern != "block_move"]
    assert all([one.address for one in first] == [8 * place] for first in at)
    if kind == "bit":
        assert [(one.pattern, one.number, one.words) for one in found] == [("walking_bits", 1, 1)]
        assert found[0].xor_or == found[0].xor_and == at[0][0].xor == f"{1 << bit:016x}"
        assert rows[0][0] <= 8 * place / 2**20 < rows[0][1]
        assert rows[0][2:] == (1, str(bit))
    else:
        small = set() if words == WORDS else {"neighbours"}
        assert {one.pattern for one in found} >= PATTERNS.keys() - {"block_move"} - small


@needs_cc
def test_a_slow_memory_is_slow_and_right(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = start()

    def sleep(seconds: float) -> None:
        gpu.clock += seconds

    monkeypatch.setattr(device, "CudaMemory", partial(CudaMemory, sleep=sleep))
    found = by_name(ran(capsys, "inject=slow"))
    assert found["vram_rate"] == pytest.approx(0.5, abs=0.02)
    assert found["vram_copy"] == pytest.approx(1.0)
    assert found["vram_miscompares"] == 0


@needs_cc
def test_a_gpu_that_hangs_is_given_up(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = start()
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += max(seconds, 0.5)

    monkeypatch.setattr(device, "CudaMemory", partial(CudaMemory, lambda: now[0], sleep))
    assert main([*LOAD, "inject=hang"]) == 1
    captured = capsys.readouterr()
    assert (
        captured.err
        == "vram: the GPU did not finish a pass over its memory within 60 s: it hangs\n"
    )
    assert gpu.launched[-1] == "spin"
    assert 60 < now[0] < 70
    with pytest.raises(ProtocolError, match="load_end_missing"):
        parse(captured.out)


@needs_cc
def test_kernels_that_did_nothing_prove_nothing(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start(), "built", SimpleNamespace(launch=lambda *_: None))
    assert main(LOAD) == 1
    captured = capsys.readouterr()
    assert (
        f"vram: 0 of {WORDS} words were written or compared in a pass of own_address"
        in captured.err
    )
    assert salvage(captured.out) == ()


@needs_cc
def test_a_memory_that_keeps_nothing(
    start: Start, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = start()

    class Rotten:
        def launch(self, name: str, blocks: int, threads: int, *arguments: Any) -> None:
            sound.launch(name, blocks, threads, *arguments)
            gpu.given.array[:] ^= (
                0x5555_0000_0000_0001  # the piece that was taken last is the memory
            )

    sound = gpu.built
    monkeypatch.setattr(gpu, "built", Rotten())
    output = ran(capsys)
    reading = [one for pattern in PATTERNS.values() for one in pattern(WORDS, 0) if one.reads]
    assert LINES > len(output.miscompares) == len(reading) + 2  # those of the pauses
    assert all(found.words > 0 for found in output.miscompares)
    wrong = [
        row[3] for row in next(table for table in output.tables if table.name == "vram_passes").rows
    ]
    assert min(float(count) for count in wrong) >= WORDS // 3
    assert by_name(output)["vram_miscompares"] == sum(float(count) for count in wrong)
    rows = next(table for table in output.tables if table.name == "vram_map").rows
    assert len(rows) == WORDS // TILE
    assert sum(float(row[2]) for row in rows) == by_name(output)["vram_miscompares"]
