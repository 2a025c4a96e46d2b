"""The copy load from its command line to its end line, on a torch that is numpy (`fake_torch`)."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from load_texts import values
from written import written

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
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import LoadOutput, Progress, decode, parse

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
        others = int(asked.get("gpus", 1)) - 1
        ask = Ask(seconds=seconds, peers=others, mib=1, inject=inject)
        output = parse(written(lambda output: copy_load.run(ask, output)))
        if inject is None:
            contract.prove(ask, output, {"uuid": output.parameters["uuid"]}, 1e3)
        return output

    return made


@pytest.mark.parametrize("inject", [None, "slow"])
def test_a_clean_run(load: Load, inject: str | None) -> None:
    output = load(inject)
    assert (output.load, output.injected) == ("gpu_copy", inject)
    assert output.parameters == {
        "seconds": 0.01,
        "mib": 1,
        **({"inject": inject} if inject else {}),
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
    # The fake does one thing after another, so the other way has always ended.
    apart = [note for note in output.notes if "the other way was not busy to the end of" in note]
    assert [note.partition(":")[0] for note in apart] == [OWN[3], OWN[4]]
    (table,) = output.tables
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
    text = written(lambda output: copy_load.run(Ask(seconds=4.0, peers=3, mib=1), output))
    assert taken == [*((name, 4.0) for name in OWN), *[("copy_own_p2p", 2.0)] * 2]
    said = [one for one in map(decode, text.splitlines()) if isinstance(one, Progress)]
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


@pytest.mark.usefixtures("load")
@pytest.mark.parametrize(
    ("asked", "room", "said"),
    [
        ({"gpus": "0"}, 1 << 40, "torch sees no GPU"),
        ({"fail": "3"}, 1 << 40, "CUDA error: an illegal memory access was encountered\n"),
        ({"gpus": "3", "peers": "1,2"}, 1 << 40, "CUDA shows 2 GPUs beside the load's own"),
        ({}, 1 << 20, "the buffers need "),  # too little host memory is no fault of the GPU
        ({}, 1 << 40, ""),
    ],
)
def test_the_program_ends_with_its_last_line_or_a_sentence(
    torch: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: dict[str, str],
    room: int,
    said: str,
) -> None:
    torch(**asked)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(copy_load, "available_bytes", lambda: room)
    assert main(WORDS) == bool(said)
    printed = capsys.readouterr()
    assert printed.err.startswith(f"gpu_copy: {said}" if said else "")
    assert printed.err.count("\n") == bool(said)
    assert ('"end"' in printed.out) == (not said)


def test_each_way_is_busy_for_longer_than_the_other() -> None:
    assert copy_load.background_copies(50.0, 50.0) == 3
    assert copy_load.background_copies(25.0, 6.0) == 3
    assert copy_load.background_copies(6.0, 25.0) == 7


def test_local_buffers_are_beyond_the_cache() -> None:
    assert copy_load.local_words(140 << 30, 60 * MIB) == (4 << 30) // 8
    assert copy_load.local_words(8 << 30, 60 * MIB) == (2 << 30) // 8
    assert copy_load.local_words(960 * MIB, 60 * MIB) == 240 * MIB // 8
    with pytest.raises(
        LoadError, match=r"only 0.94 GiB of the GPU's memory are free.* 4 times its L2 cache"
    ):
        copy_load.local_words(960 * MIB - 1, 60 * MIB)
    with pytest.raises(LoadError):
        copy_load.local_words(0, 0)


def test_host_buffers_take_half_of_what_is_available_at_most() -> None:
    copy_load.require_host_memory(512, 4 << 30)
    with pytest.raises(
        LoadError, match=r"need 2.00 GiB of host memory, more than half of the 4.00 GiB"
    ):
        copy_load.require_host_memory(512, (4 << 30) - 1)


def test_the_hump_is_explained() -> None:
    assert elementwise.hump(60 * MIB) == (
        "elementwise product: the L2 cache holds 60.0 MiB, the vectors of up to 4194304 elements "
        "fit into it; "
        "only larger ones show the memory"
    )
    assert "no vectors of the table fit into it" in elementwise.hump(0)
