"""The copy load from its command line to its end line, on a torch that is numpy (`fake_torch`)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from io import StringIO
from typing import Any

import numpy as np
import pytest
from load_texts import values

from acceptance.core.parts import Gpu, Pair
from acceptance.loads import contract
from acceptance.loads.__main__ import main
from acceptance.loads.copy import contract as copy_contract
from acceptance.loads.copy import device_pattern, elementwise, pattern
from acceptance.loads.copy import load as copy_load
from acceptance.loads.copy.contract import PEER_READINGS, Ask
from acceptance.loads.copy.pattern import Words, first_of
from acceptance.loads.copy.tally import CopyTally
from acceptance.loads.copy.transfers import (
    BidirectionalTransfer,
    DeviceToDevice,
    UnidirectionalTransfer,
)
from acceptance.loads.protocol import LoadOutput, Output, Progress, decode, parse

MIB = 1 << 20
WORDS = ["gpu_copy", "seconds=0.01", "mib=1"]
OWN = (  # in the order in which the load takes them
    "copy_own_d2d",
    "copy_own_h2d",
    "copy_own_d2h",
    "copy_own_h2d_bidirectional",
    "copy_own_d2h_bidirectional",
    "copy_own_h2d_pageable",
    "copy_own_d2h_pageable",
)
Load = Callable[..., LoadOutput]


@pytest.fixture
def load(torch: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Load:
    """Run the load in small, and read what it printed, which is the whole answer."""
    for module in (copy_load, copy_contract):
        monkeypatch.setattr(module, "ELEMENTS", (100, 400))
    monkeypatch.setattr(elementwise, "_BATCH_S", 1e-4)
    monkeypatch.setattr(device_pattern, "_CHUNK", 50_000)

    def made(inject: Any = None, seconds: float = 0.01, **asked: str) -> LoadOutput:
        torch(**asked)
        stream = StringIO()
        others = int(asked.get("gpus", 1)) - 1
        ask = Ask(seconds=seconds, peers=others, mib=1, inject=inject)
        copy_load.run(ask, Output(stream))
        output = parse(stream.getvalue())
        if inject is None:
            contract.prove(ask, output, {"uuid": output.parameters["uuid"]}, 1e3)
        return output

    return made


def test_a_clean_run(load: Load) -> None:
    output = load()
    assert output.load == "gpu_copy"
    assert output.parameters == {
        "seconds": 0.01,
        "mib": 1,
        "gpu": "Fake GPU",
        "uuid": "GPU-00000000-0000-4000-8000-000000000000",
        "capability": "9.0",
        "library": "torch 0.fake, CUDA 13.0",
    }
    assert output.miscompares == ()
    counts = ("elementwise_miscompares", "copy_own_miscompares")
    found = values(output)
    names = (OWN[0], counts[0], *OWN[1:], counts[1])
    assert list(found) == [(name, Gpu(0)) for name in names]
    assert all(found[name, Gpu(0)] > 0 for name in OWN)
    assert all(found[name, Gpu(0)] == 0 for name in counts)
    units = {reading.name: reading.unit for reading in output.readings}
    assert units == {**dict.fromkeys(OWN, "GB/s"), **dict.fromkeys(counts, "count")}
    assert output.notes[0] == "Fake GPU, compute capability 9.0, torch 0.fake, CUDA 13.0"
    assert "the kernel shows no NUMA node of 0000:fe:1f.0" in output.notes[1]
    assert "copy_own_d2d: buffers of 16 MiB, the L2 cache has 2.0 MiB" in output.notes
    assert sum(note.endswith("compared whole, 0 wrong") for note in output.notes) == len(OWN)


def test_the_table_of_products(load: Load) -> None:
    (table,) = load().tables
    assert (table.name, tuple(table.columns)) == ("elementwise", ("elements", "MiB", "GB/s"))
    assert [tuple(row[:2]) for row in table.rows] == [(100, 1200 / MIB), (400, 4800 / MIB)]
    assert all(row[2] > 0 for row in table.rows)


def test_peers_are_copied_to_where_they_can_be_reached(load: Load) -> None:
    output = load(gpus="3", peers="2")
    found = values(output)
    assert found["copy_own_p2p", Pair(Gpu(0), Gpu(2))] > 0
    assert found["copy_own_p2p_miscompares", Pair(Gpu(0), Gpu(2))] == 0
    assert ("copy_own_p2p", Pair(Gpu(0), Gpu(1))) not in found
    absent = [(one.name, one.component) for one in output.absences]
    assert absent == [(name, Pair(Gpu(0), Gpu(1))) for name in PEER_READINGS]


def test_the_paths_to_peers_share_the_time_of_one_path(
    torch: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch(gpus="4", peers="1,3")
    monkeypatch.setattr(copy_load, "ELEMENTS", (100,))
    taken: list[tuple[str, float]] = []

    def measure(transfer: UnidirectionalTransfer, seconds: float, *_: object) -> CopyTally:
        taken.append((transfer.name, seconds))
        return CopyTally([1.0, 2.0, 3.0], compared=4)

    monkeypatch.setattr(copy_load, "measure_copies", measure)
    stream = StringIO()
    copy_load.run(Ask(seconds=4.0, peers=3, mib=1), Output(stream))
    assert taken == [*((name, 4.0) for name in OWN), *[("copy_own_p2p", 2.0)] * 2]
    said = [one for one in map(decode, stream.getvalue().splitlines()) if isinstance(one, Progress)]
    assert [one.done_s for one in said] == [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 30.0, 32.0]
    assert {one.of_s for one in said} == {32.0}


def test_a_wrong_byte_is_found_on_every_path(load: Load) -> None:
    output = load("wrong", gpus="2", peers="1")
    assert output.injected == "wrong"
    found = values(output)
    assert found["copy_own_miscompares", Gpu(0)] == len(OWN)
    assert found["copy_own_p2p_miscompares", Pair(Gpu(0), Gpu(1))] == 1
    assert found["elementwise_miscompares", Gpu(0)] == 2
    copies = [told for told in output.miscompares if told.check != "elementwise"]
    assert [(told.check, told.component) for told in copies] == [
        *((name, Gpu(0)) for name in OWN),
        ("copy_own_p2p", Pair(Gpu(0), Gpu(1))),
    ]
    for told in copies:
        assert (told.copy, told.words, told.first[0].xor) == (1, 1, f"{1 << 21:016x}")


def test_slow_is_stamped_and_finds_nothing_wrong(load: Load) -> None:
    output = load("slow")
    assert output.injected == "slow"
    assert output.miscompares == ()


@pytest.mark.parametrize(("device", "paths"), [("cuda", 5), ("cpu", 4), ("cuda:1", 1)])
def test_a_copy_that_stops_short_is_wrong_every_time(load: Load, device: str, paths: int) -> None:
    output = load(gpus="2", peers="1", lose=device)
    wrong = {told.check for told in output.miscompares}
    assert len(wrong) == paths
    words = MIB // 8
    for told in output.miscompares:
        last = words if told.check != "copy_own_d2d" else 16 * words
        assert (told.words, told.first[0].index) == (1, last - 1)
        assert told.first[0].got == "0" * 16
    beside = {told.check for told in output.miscompares if getattr(told, "beside", False)}
    assert beside == {"cuda": {OWN[4]}, "cpu": {OWN[3]}, "cuda:1": set()}[device]


def test_a_product_that_is_no_number_is_wrong(load: Load) -> None:
    output = load(nan="400")
    assert values(output)["elementwise_miscompares", Gpu(0)] == elementwise.BATCHES
    told = output.miscompares[0]
    assert (told.elements, told.wrong, told.index, told.got) == (400, 1, 3, "nan")


def test_where_both_ways_do_not_run_at_once_it_is_said(load: Load) -> None:
    # The fake does one thing after another, so the other way has always ended.
    told = [note for note in load().notes if "the other way was not busy to the end of" in note]
    assert [note.partition(":")[0] for note in told] == [OWN[3], OWN[4]]


def test_where_they_do_nothing_is_said(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(self: BidirectionalTransfer, times: int) -> float:
        self.other.copy()
        return UnidirectionalTransfer.timed(self, times)

    monkeypatch.setattr(BidirectionalTransfer, "timed", timed)
    output = load()
    assert output.miscompares == ()
    assert not any("the other way was not busy" in note for note in output.notes)


def test_both_ways_at_once_end_at_the_first_try(
    load: Load, torch: Callable[..., None], monkeypatch: Any
) -> None:
    torch()
    import torch as fake

    monkeypatch.setattr(fake.Event, "elapsed_time", lambda one, other: id_order.index(other) + 1.0)
    id_order: list[Any] = []
    monkeypatch.setattr(fake.Event, "__init__", lambda self, enable_timing: id_order.append(self))

    class Still:
        copies = 0

        def copy(self) -> None:
            self.copies += 1

        def spoil(self) -> None: ...

    one, other = Still(), Still()
    both = BidirectionalTransfer("x", Gpu(0), 1, one, other, 3)  # type: ignore[arg-type]
    # The events are made in the order start, began, ended, last: the other way's last copy ends
    # after the one measured.
    assert both.timed(1) == pytest.approx(3e-3)
    assert (one.copies, other.copies, both.apart) == (1, 3, 0)


def test_every_copy_that_a_peer_never_got_is_wrong_though_it_reads_back(load: Load) -> None:
    output = load(seconds=0.05, gpus="3", peers="1,2", window="cuda:2")
    found = values(output)
    assert found["copy_own_p2p_miscompares", Pair(Gpu(0), Gpu(1))] == 0
    (told,) = (note for note in output.notes if note.startswith("copy_own_p2p of gpu0->gpu2"))
    compared = int(told.partition("copies; ")[2].partition(" ")[0])
    assert found["copy_own_p2p_miscompares", Pair(Gpu(0), Gpu(2))] == compared >= 4
    assert {one.component for one in output.miscompares} == {Pair(Gpu(0), Gpu(2))}
    assert {(one.words, one.unwritten) for one in output.miscompares} == {(MIB // 8, MIB // 8)}
    assert len({one.first[0].expected for one in output.miscompares}) == len(output.miscompares)


def test_what_the_turn_before_left_at_a_peer_is_wrong(torch: Callable[..., None]) -> None:
    torch(gpus="2")
    import torch as fake

    source, destination = fake.empty(1000, np.int64, "cuda"), fake.empty(1000, np.int64, "cuda:1")
    way = DeviceToDevice(source, destination, ("GPU-a", "GPU-b"))
    way.spoil()
    way.copy()
    assert way.fault() is None
    left = destination.array.copy()
    way.spoil()
    destination.array[:] = left
    found = way.fault()
    assert found is not None
    assert (found["words"], found["unwritten"]) == (1000, 0)


@pytest.mark.parametrize("start", [1 << 40, 255 << 40, first_of("GPU-a", "GPU-b", 3)])
def test_a_gpu_makes_the_words_of_the_processor(
    torch: Callable[..., None], monkeypatch: Any, start: int
) -> None:
    torch()
    import torch as fake

    monkeypatch.setattr(device_pattern, "_CHUNK", 300)
    words: Words = np.empty(1000, np.uint64)
    pattern.write(words, start)
    tensor = fake.empty(1000, np.int64, "cuda")
    device_pattern.write(tensor, start)
    assert (tensor.array.view(np.uint64) == words).all()
    assert device_pattern.fault(tensor, start) is None
    tensor.array[[0, 299, 300, 999, 998]] ^= 5
    assert device_pattern.fault(tensor, start) == pattern.fault(words, tensor.array.view(np.uint64))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)


@pytest.mark.usefixtures("program", "load")
def test_too_little_host_memory_is_no_fault_of_the_gpu(
    torch: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch()
    monkeypatch.setattr(copy_load, "available_bytes", lambda: 1 << 20)
    assert main(WORDS) == 1
    printed = capsys.readouterr()
    assert printed.err.endswith("are available: free memory\n")
    assert '"end"' not in printed.out


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"gpus": "0"},
            (
                "gpu_copy: torch sees no GPU: see that `nvidia-smi` lists one here and that "
                "CUDA_VISIBLE_DEVICES names it\n"
            ),
        ),
        ({"fail": "3"}, "gpu_copy: CUDA error: an illegal memory access was encountered\n"),
        (
            {"gpus": "3", "peers": "1,2"},
            "gpu_copy: CUDA shows 2 GPUs beside the load's own, and copies to 0 are due: give "
            "peers=2, or show it others (CUDA_VISIBLE_DEVICES)\n",
        ),
    ],
)
def test_what_cuda_says_ends_the_load(
    torch: Callable[..., None], capsys: pytest.CaptureFixture[str], asked: dict[str, str], said: str
) -> None:
    torch(**asked)
    assert main(WORDS) == 1
    printed = capsys.readouterr()
    assert printed.err == said
    assert '"end"' not in printed.out


@pytest.mark.usefixtures("program", "load")
def test_the_program_runs_whole(
    torch: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    torch()
    assert main(WORDS) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert parse(printed.out).load == "gpu_copy"
