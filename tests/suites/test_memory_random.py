"""Random reads of the RAM: the load by its parts and whole."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cases import each
from load_program import CPUS, forked, run
from machine_tree import Tree

from acceptance.core.limit import GIB
from acceptance.core.parts import Socket
from acceptance.loads import asks, contract
from acceptance.loads.cpu import memory_random
from acceptance.loads.cpu.contract import MemoryRandom
from acceptance.loads.cpu.cores import cores_of
from acceptance.loads.cpu.memory_random import (
    Slice,
    draw,
    fill,
    nodes_of,
    pages_by_node,
    partner,
    require_placed,
    slice_words,
    sockets_of,
    wrong_of,
)
from acceptance.loads.miscompare import WrongMemory
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output, parse

SMALL = {"seconds": 0.01, "llc_bytes": 65536, "gib": 0.004}
TWO = {f"socket{number}": ((cpu,),) for number, cpu in enumerate(CPUS)}
ASK = MemoryRandom(**SMALL, cores={"socket0": ((CPUS[0],),)})


def argv(**more: Any) -> tuple[str, ...]:
    return asks.argv("python", msgspec.structs.replace(ASK, **more))[1:]


needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="two sockets need two CPUs")


# --- the load ---


def test_a_clean_run() -> None:
    done = run(*argv())
    assert (done.returncode, done.stderr) == (0, "")
    output = parse(done.stdout)
    contract.prove(ASK, output, {"filled_bytes": int(0.004 * GIB) // 4096 * 4096}, 1.0)
    assert all((one.value > 0) == (one.unit == "GB/s") for one in output.readings)
    assert "of 3 turns" in output.notes[1]


def test_a_flipped_bit_is_found_with_its_address() -> None:
    output = parse(forked(*argv(inject="bitflip")).stdout)
    assert output.injected == "bitflip"
    counted = output.readings[1].value
    assert counted >= 1
    for one in output.miscompares:
        assert isinstance(one, WrongMemory)
        assert (one.component, one.check, one.xor_or) == (Socket(0), "ram", f"{1 << 17:016x}")
        assert len({wrong.address for wrong in one.first}) == 1
    assert sum(one.words for one in output.miscompares) <= counted  # a core reports eight times


def test_a_worker_that_dies_leaves_no_end() -> None:
    done = forked(*argv(inject="die"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"memory_random: the worker on core:{CPUS[0]} was ended by")
    assert '"end"' not in done.stdout


@each(
    "extra, said",
    [
        ({"llc_bytes": 900_000_000_000_000}, "leave the caches: free memory"),
        ({"cores": {"socket0": ((999999,),)}}, "may not run on CPU 999999"),
    ],
)
def test_what_this_machine_cannot_do_gets_one_sentence(extra: dict[str, Any], said: str) -> None:
    done = forked(*argv(**extra))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert said in done.stderr


class TwoSockets:
    """The load in this process, on two sockets that are told in files."""

    def __init__(self, folder: Path) -> None:
        tree = Tree(folder)
        tree.memory(4)
        for node in range(2):
            free = f"Node {node} MemFree:  2097152 kB\n"
            tree.files(f"sys/devices/system/node/node{node}", cpulist=CPUS[node], meminfo=free)
        self.root = tree.root

    def run(self) -> None:
        memory_random.run(MemoryRandom(**SMALL, cores=TWO), Output(sys.stdout), self.root)


@needs_two
def test_two_sockets_read_their_own_memory_and_that_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_random, "where", lambda _: {0: 10**6, 1: 10**6})
    TwoSockets(tmp_path).run()
    output = parse(capfd.readouterr().out)
    contract.prove(MemoryRandom(**SMALL, cores=TWO), output, {}, 1.0)
    assert all((one.value > 0) == (one.unit == "GB/s") for one in output.readings)


@needs_two
def test_memory_that_is_not_shown_where_it_must_lie_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memory_random, "where", lambda _: {0: 1048})
    why = rf"shows 0 of the 5\d* pages of core:{CPUS[1]} on socket1, where all must lie"
    with pytest.raises(LoadError, match=why):
        TwoSockets(tmp_path).run()
    assert '"reading"' not in capfd.readouterr().out


# --- its parts ---

CORES = cores_of(
    {"socket0": ((0,), (1,), (2,)), "socket1": ((3,), (4,)), "socket2": ((5,), (6,), (7,))},
    set(range(8)),
)
SOCKETS = sockets_of(CORES)


def test_every_core_reads_its_own_slice_and_one_of_each_other_socket() -> None:
    assert [partner(core, 0, SOCKETS) for core in CORES] == list(CORES)
    assert [partner(core, 1, SOCKETS).cpu for core in CORES] == [3, 4, 3, 5, 6, 0, 1, 2]
    assert [partner(core, 2, SOCKETS).group for core in CORES[:4]] == ["socket2"] * 3 + ["socket0"]


@each(
    "nodes, told",
    [
        (("0-2", "3-4", "5-7"), None),
        (("0", "1-2", "3-4", "5-7", ""), None),
        (("0-4", "5-7"), "do not tell the memory of these sockets apart"),
        (("0-2", "3-4"), "do not tell the memory of these sockets apart"),
        ((), "do not tell the memory of these sockets apart"),
    ],
)
def test_the_nodes_of_a_socket(tmp_path: Path, nodes: tuple[str, ...], told: str | None) -> None:
    for number, cpus in enumerate(nodes):
        Tree(tmp_path).files(f"sys/devices/system/node/node{number}", cpulist=cpus)
    if told is None:
        found = nodes_of(SOCKETS, tmp_path)
        assert list(found) == list(SOCKETS)
        assert (
            sorted(node for own in found.values() for node in own)
            == list(range(len(nodes)))[: sum(map(bool, nodes))]
        )
    else:
        with pytest.raises(LoadError, match=told):
            nodes_of(SOCKETS, tmp_path)


@each(
    "cores, llc, gib, room, filled",
    [
        (2, 1, 8.0, {2: 64 * GIB}, 8 * GIB),
        (2, GIB, 1.0, {2: 64 * GIB}, 4 * GIB),  # more than is asked for, to leave the caches
        (2, 1, 60.0, {2: 40 * GIB}, 36 * GIB - 2 * memory_random._WORKER),  # what fits
        (4, 1, 60.0, {4: 80 * GIB, 2: 10 * GIB}, 18 * GIB - 4 * memory_random._WORKER),
        (2, GIB, 8.0, {2: 4 * GIB}, None),
        (2, 1, 8.0, {2: 0}, None),
    ],
)
def test_how_much_is_filled(
    cores: int, llc: int, gib: float, room: Mapping[int, int], filled: int | None
) -> None:
    if filled is None:
        with pytest.raises(LoadError, match="GiB is all that may be filled on these sockets"):
            slice_words(cores, llc, gib, room)
    else:
        words = slice_words(cores, llc, gib, room)
        assert filled - mmap.PAGESIZE * cores < 8 * words * cores <= filled


MAPS = """\
7f0000000000 default anon=3 dirty=3 N0=3 kernelpagesize_kB=4
7f1000000000 default file=/dev/zero\\040(deleted) dirty=9 mapped=9 N0=2 N12=7 kernelpagesize_kB=4
"""


def test_where_the_kernel_says_that_the_memory_lies() -> None:
    assert pages_by_node(MAPS, 0x7F1000000000) == {0: 2, 12: 7}
    assert pages_by_node(MAPS, 0x7F2000000000) == {}


@pytest.mark.skipif(not Path("/proc/self/numa_maps").exists(), reason="a kernel without NUMA")
def test_this_kernel_shows_every_page() -> None:
    mapping = mmap.mmap(-1, 1 << 20)
    words = np.frombuffer(mapping, dtype=np.uint64)
    words.fill(1)
    assert sum(memory_random.where(words.ctypes.data).values()) == (1 << 20) // mmap.PAGESIZE


def test_a_slice_is_whole_pages_of_64_kib_where_the_kernel_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_random, "_PAGE", 1 << 16)
    words = slice_words(3, 1 << 20, 1.0, {3: 64 << 30})
    assert words * memory_random.WORD % (1 << 16) == 0
    assert memory_random.slice_pages(words) == words * memory_random.WORD >> 16


@each(
    "own, there",
    [
        ({0: 100}, None),
        ({0: 60, 1: 40}, None),
        ({0: 99, 5: 1}, None),
        ({0: 98, 5: 2}, 98),
        ({0: 98}, 98),  # two in no place at all
        ({}, 0),
    ],
)
def test_pages_elsewhere_or_nowhere(own: dict[int, int], there: int | None) -> None:
    nodes = {"socket0": frozenset({0, 1})}
    if there is None:
        require_placed({CORES[0]: own}, nodes, 100)
    else:
        with pytest.raises(LoadError, match=rf"shows {there} of the 100 pages of core:0 on"):
            require_placed({CORES[0]: own}, nodes, 100)


def test_places_go_all_over_the_slice_and_differ_by_turn_and_core() -> None:
    count = 2**17
    drawn = np.zeros((3, count), dtype=np.int64)
    words = 8 * 10**9
    for row, (number, turn) in zip(drawn, ((0, 0), (0, 1), (1, 0)), strict=True):
        draw(row, Slice(number, words, mmap.mmap(-1, 1)), turn, words)
    assert drawn.min() >= 0
    assert drawn.max() < words
    parts = np.bincount(drawn[0] * 100 // words, minlength=100)
    assert parts.min() > 0.85 * count / 100
    assert np.bincount(drawn[0] % 8).min() > 0.95 * count / 8
    assert all(np.intersect1d(a, b).size < 0.01 * count for a, b in pairwise(drawn))


@each("bits", [1, 1 << 63, 0b101])
def test_a_wrong_word_is_told_by_its_address_and_bits(bits: int) -> None:
    own = Slice(3, 1 << 17, mmap.mmap(-1, 8 << 17))
    words = np.frombuffer(own.mapping, dtype=np.uint64)
    fill(words, own.first)
    assert np.unique(words).size == words.size
    places = np.arange(words.size, dtype=np.int64)[::-1].copy()
    assert wrong_of(places, words[places], own) is None
    words[[5, 100_000]] ^= np.uint64(bits)
    found: Any = wrong_of(places, words[places], own)
    assert found["words"] == 2
    assert found["xor_or"] == found["xor_and"] == f"{bits:016x}"
    assert found["bits"] == {bit: 2 for bit in range(64) if bits >> bit & 1}
    assert [one.address for one in found["first"]] == [
        own.address + 8 * place for place in (100_000, 5)
    ]
