"""The load of random reads: all cores gather words from all over a large part of RAM, and every
word is verified.

    python -m acceptance.loads memory_random seconds=10 llc_bytes=33554432 gib=64
        cores='{"socket0": [[0], [1]], "socket1": [[2], [3]]}'

One process for each physical core, pinned to the core's first logical CPU, has a slice of the
memory that it fills itself, so that the kernel puts it beside that core. The slices together are
`gib`, at least four times the last-level caches, and at most 0.9 of the free memory. The word at
each place is a 64-bit mix of its number, so that every word differs and each can be
computed. Then the slices are made read-only.

All cores begin each turn at one moment and gather 2**21 words with numpy's `take`, from places that
a counter-based generator spreads evenly over the whole slice: neighbours of the list are far apart,
and nothing can be known ahead or found in a cache. In turns of the own memory each core reads its
own slice. On machines of several sockets these take turns with turns in which each core reads the
slice of a core of another socket, all sockets at once and both ways. After every turn, outside the
timed part, all gathered words are compared with the computed ones.

The measurement is gathered bytes / seconds from the first core's start to the last one's end, of
each socket, median of the turns. Only the gathered words count, 8 bytes each: the memory moves a
whole line of the cache for each of them, and the list of places and the gathered words besides.
The slices are shared memory, which has pages of 4 KiB unless the kernel is told otherwise, so most
reads walk the page tables too: how many huge pages a kernel finds differs from night to night.

On machines of several sockets the kernel must show that at least 99 % of each slice lies on its own
socket, before and after the turns; else nothing is measured. No privilege is needed for that: the
kernel puts a page beside the core that writes it first, and never moves shared read-only pages.

It ends with one sentence on standard error and no end line when a worker dies or stops answering,
too little memory is free, or it lies elsewhere.
"""

from __future__ import annotations

import math
import mmap
import os
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acceptance.core.limit import GIB, MIB
from acceptance.core.parts import Component
from acceptance.loads.copy.numa import cpu_list
from acceptance.loads.cpu.contract import MemoryRandom, component_of, random_names
from acceptance.loads.cpu.cores import Core, Done, cores_of, spent, working
from acceptance.loads.cpu.memory_bandwidth import CACHE_FACTOR, available_bytes
from acceptance.loads.miscompare import WrongElement, WrongMemory
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output
from acceptance.loads.ranks import TaskPipe, sleep_until
from acceptance.loads.rate_tally import RateTally

if TYPE_CHECKING:  # numpy is loaded by the pinned workers only
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    Places = NDArray[np.int64]

WORD = 8  # bytes
GATHERED = 2**21  # words of a core in a turn: some hundredths of a second
# Words that are made or compared at a time: they stay in the core's cache, and arrays of 128 KiB or
# more are mapped anew each time by the C library, which makes filling three times as slow.
_BLOCK = 2**13
_LINE = 8  # words of a line of the cache
_PAGE = mmap.PAGESIZE  # 4 KiB on x86, 64 KiB on many Arm kernels; numa_maps counts these
_SHARE = 0.9  # of the free memory, for slices and workers
_WORKER = 128 * MIB  # Python, numpy, and the list of places with the words gathered from them
_PLACED = 0.99  # of a slice on its own socket
_COUNTED = 3
_TOLD = 8  # wrong words in a report
_DRAWS = 1 << 63  # where the sequence of places begins; that of the words begins at 0


@dataclass(frozen=True, slots=True)
class Slice:
    """The memory of one core: its number, its words, and the shared mapping that holds them."""

    number: int
    words: int
    mapping: mmap.mmap

    @property
    def first(self) -> int:
        """The place of its first word in the sequence of all words."""
        return self.number << 40

    @property
    def address(self) -> int:
        """The address of its first byte in this load's memory, slice after slice."""
        return self.number * self.words * WORD


# --- what the parent knows ---


def sockets_of(cores: Sequence[Core]) -> dict[str, list[Core]]:
    """The cores by their group, which is their socket."""
    found: dict[str, list[Core]] = {}
    for core in cores:
        found.setdefault(core.group, []).append(core)
    return found


def partner(core: Core, shift: int, sockets: Mapping[str, Sequence[Core]]) -> Core:
    """The core whose slice this core reads: of the socket that is `shift` places further."""
    names = list(sockets)
    others = sockets[names[(names.index(core.group) + shift) % len(names)]]
    return core if shift == 0 else others[sockets[core.group].index(core) % len(others)]


def nodes_of(sockets: Mapping[str, Sequence[Core]], root: Path) -> dict[str, frozenset[int]]:
    """The NUMA nodes of each socket, by its cores.

    Raises LoadError where a socket has none or two sockets share one.
    """
    cpus = {
        int(folder.name.removeprefix("node")): cpu_list((folder / "cpulist").read_text().strip())
        for folder in (root / "sys/devices/system/node").glob("node[0-9]*")
    }
    found = {
        name: frozenset(node for node, own in cpus.items() if own & {core.cpu for core in cores})
        for name, cores in sockets.items()
    }
    if not all(found.values()) or len(frozenset().union(*found.values())) != sum(
        map(len, found.values())
    ):
        raise LoadError(
            "the kernel's NUMA nodes do not tell the memory of these sockets apart: name all "
            "cores as one socket"
        )
    return found


def free_bytes(nodes: frozenset[int], root: Path) -> int:
    """The free memory of these nodes. Raises LoadError where the kernel does not show it."""
    total = 0
    for node in nodes:
        path = root / f"sys/devices/system/node/node{node}/meminfo"
        match = re.search(r"(?m)^Node \d+ MemFree:\s+(\d+) kB$", path.read_text())
        if match is None:
            raise LoadError(f"{path} has no MemFree line: the kernel does not show it")
        total += int(match[1]) * 1024
    return total


def slice_words(cores: int, llc_bytes: int, gib: float, room: Mapping[int, int]) -> int:
    """Words of each core's slice: `gib` in all and more than the caches, or what fits.

    `room` is the free memory for each number of cores that share it. Raises LoadError where what
    fits does not leave the caches.
    """
    fits = min(_SHARE * free / sharing - _WORKER for sharing, free in room.items())
    least = math.ceil(max(CACHE_FACTOR * llc_bytes / cores, 1) / _PAGE) * _PAGE
    size = min(max(gib * GIB / cores, least), fits)
    if size < least:
        raise LoadError(
            f"{max(size, 0) * cores / GIB:.2f} GiB is all that may be filled on these sockets, and "
            f"{least * cores / GIB:.2f} GiB leave the caches: free memory (`free -h`, "
            "`numastat -m`); `sync; echo 3 > /proc/sys/vm/drop_caches` as root frees that of files"
        )
    return int(size) // _PAGE * _PAGE // WORD


def slice_pages(words: int) -> int:
    """The pages of a slice of so many words, in the size that the kernel counts in."""
    return words * WORD // _PAGE


def pages_by_node(text: str, address: int) -> dict[int, int]:
    """The pages on each node of the mapping at this address, from /proc/self/numa_maps.

    Empty where it is not there.
    """
    for line in text.splitlines():
        if int(line.partition(" ")[0], 16) == address:
            return {int(node): int(pages) for node, pages in re.findall(r" N(\d+)=(\d+)", line)}
    return {}


def require_placed(
    found: Mapping[Core, Mapping[int, int]], nodes: Mapping[str, frozenset[int]], pages: int
) -> None:
    """Raise LoadError unless nearly all pages of each core's slice are on its own socket."""
    for core, own in found.items():
        there = sum(count for node, count in own.items() if node in nodes[core.group])
        if there < _PLACED * pages:
            raise LoadError(
                f"the kernel shows {there} of the {pages} pages of {core.component} on "
                f"{core.group}, where all must lie: free memory there (`numastat -m`), and switch "
                "swap off"
            )


# --- what a worker does ---


def fill(words: Words, first: int) -> None:
    """Write the words of the sequence from `first` on."""
    from acceptance.loads.exact_product import spread

    for begin in range(0, words.size, _BLOCK):
        part = words[begin : begin + _BLOCK]
        part[...] = spread(part.size, first + begin)


def draw(places: Places, own: Slice, turn: int, words: int) -> None:
    """The places of a turn: evenly over `words` words, others in each turn and on each core."""
    import numpy as np

    from acceptance.loads.exact_product import spread

    start = _DRAWS + (own.number << 46) + turn * places.size
    lines, low = np.uint64(words // _LINE), np.uint64(_LINE - 1)
    for begin in range(0, places.size, _BLOCK):
        part = places[begin : begin + _BLOCK]
        drawn = spread(part.size, start + begin)
        part[...] = (((drawn >> np.uint64(32)) * lines) >> np.uint64(32)) * np.uint64(_LINE) + (
            drawn & low
        )


def wrong_of(places: Places, got: Words, of: Slice) -> dict[str, Any] | None:
    """How gathered words differ, as fields of a WrongMemory; None where all are right."""
    import numpy as np

    from acceptance.loads.exact_product import mixed

    count, either, every = 0, 0, (1 << 64) - 1
    bits: Counter[int] = Counter()
    first: list[WrongElement] = []
    for begin in range(0, places.size, _BLOCK):
        part, have = places[begin : begin + _BLOCK], got[begin : begin + _BLOCK]
        due = mixed(part.view(np.uint64) + np.uint64(of.first))
        if not (differs := due != have).any():
            continue
        xor = (due ^ have)[differs]
        count += xor.size
        either |= int(np.bitwise_or.reduce(xor))
        every &= int(np.bitwise_and.reduce(xor))
        for bit in range(64):
            if found := int(((xor >> np.uint64(bit)) & np.uint64(1)).sum()):
                bits[bit] += found
        first += [
            WrongElement(
                address=of.address + int(part[place]) * WORD,
                expected=f"{due[place]:016x}",
                got=f"{have[place]:016x}",
                xor=f"{due[place] ^ have[place]:016x}",
            )
            for place in np.flatnonzero(differs)[: _TOLD - len(first)]
        ]
    if not count:
        return None
    return {
        "words": count,
        "bits": dict(bits),
        "xor_or": f"{either:016x}",
        "xor_and": f"{every:016x}",
        "first": tuple(first),
    }


def work(
    core: Core, connection: Connection, reads: Sequence[tuple[Component, Slice]], inject: str | None
) -> None:
    """The worker's whole sequence, until the parent ends it.

    `reads` are the component and the slice of each kind of turn, its own first. Fill the own slice
    and send filled. At the start of turn None map and protect every slice, and send where the own
    one lies, if there are others; of every other turn gather, verify, and send what came of it.
    """
    import ctypes

    import numpy as np

    own = reads[0][1]
    arrays = [np.frombuffer(one.mapping, dtype=np.uint64) for _, one in reads]
    places, got = np.zeros(GATHERED, dtype=np.int64), np.zeros(GATHERED, dtype=np.uint64)
    fill(arrays[0], own.first)
    if inject == "bitflip":  # in a word that the second turn of the own memory reads first
        draw(places, own, len(reads), own.words)
        arrays[0][places[0]] ^= np.uint64(1 << 17)
    connection.send(("filled", None))
    libc = ctypes.CDLL(None, use_errno=True)
    pipe = TaskPipe(connection)
    for moment, turn in pipe.tasks():
        if turn is None:
            for array in arrays:
                array[:: _PAGE // WORD].max()  # maps every page
                if libc.mprotect(
                    ctypes.c_void_p(array.ctypes.data),
                    ctypes.c_size_t(array.nbytes),
                    mmap.PROT_READ,
                ):
                    raise OSError(ctypes.get_errno(), "mprotect")
            connection.send(("ready", where(arrays[0].ctypes.data) if len(reads) > 1 else {}))
            continue
        spent = time.process_time()
        component, of = reads[turn % len(reads)]
        draw(places, own, turn, of.words)
        sleep_until(moment)
        began = time.monotonic()
        arrays[turn % len(reads)].take(places, out=got, mode="clip")
        ended = time.monotonic()
        if inject == "die" and turn == len(reads):
            os.kill(os.getpid(), signal.SIGKILL)
        verified = time.process_time()
        wrong = wrong_of(places, got, of)
        now = time.process_time()
        got.fill(0)  # a turn that gathers nothing is found
        if wrong is not None:
            pipe.report(
                WrongMemory(
                    component=component,
                    check="ram",
                    pattern="random",
                    number=turn // len(reads),
                    found_s=time.clock_gettime(time.CLOCK_BOOTTIME),
                    **wrong,
                )
            )
        count = 0 if wrong is None else wrong["words"]
        connection.send(("done", Done(began, ended, count, now - verified, now - spent)))


def where(address: int) -> dict[int, int]:
    """The pages on each node of this process's mapping; empty where the kernel does not show it."""
    try:
        return pages_by_node(Path("/proc/self/numa_maps").read_text(), address)
    except OSError:
        return {}


# --- the program ---


def run(ask: MemoryRandom, output: Output, root: Path = Path("/")) -> None:
    """Run the ranks from fork to the last reading; raises LoadError. `root` is for tests."""
    cores = cores_of(ask.cores)
    sockets = sockets_of(cores)
    room = {len(cores): available_bytes(root)}
    nodes = nodes_of(sockets, root) if len(sockets) > 1 else {}
    for socket, own in nodes.items():
        sharing = len(sockets[socket])
        room[sharing] = min(room.get(sharing, sys.maxsize), free_bytes(own, root))
    words = slice_words(len(cores), ask.llc_bytes, ask.gib, room)
    slices = {
        core: Slice(number, words, mmap.mmap(-1, words * WORD)) for number, core in enumerate(cores)
    }
    output.hello(ask.load, {**ask.parameters(), "filled_bytes": WORD * words * len(cores)})
    kinds = range(len(sockets))

    def component(core: Core, kind: int) -> Component:
        return component_of(core.group, partner(core, kind, sockets).group)

    def body(core: Core, connection: Connection, fault: str | None) -> None:
        reads = [(component(core, kind), slices[partner(core, kind, sockets)]) for kind in kinds]
        work(core, connection, reads, fault)

    tallies: dict[Component, RateTally] = defaultdict(RateTally)
    verified_s = spent_s = 0.0
    with working(ask, output, cores, body) as workers:

        def ready() -> None:
            workers.ranks.start(lambda moment: (moment, None))
            placed = workers.collect("ready")
            if len(sockets) > 1:
                require_placed(placed, nodes, slice_pages(words))

        def take(turn: int) -> None:
            nonlocal verified_s, spent_s
            done = workers.do(lambda moment: (moment, turn))
            verified_s += sum(one.verified_s for one in done.values())
            spent_s += sum(one.spent_s for one in done.values())
            by_component: dict[Component, list[Done]] = defaultdict(list)
            for core, one in done.items():
                by_component[component(core, turn % len(kinds))].append(one)
            for name, turns in by_component.items():
                tallies[name].wrong += sum(one.wrong for one in turns)
                if turn >= len(kinds):  # one of each kind goes before those that count
                    tallies[name].rates.append(WORD * GATHERED * len(turns) / spent(turns) / 1e9)

        workers.collect("filled")
        ready()
        for turn in kinds:
            take(turn)
        for _ in workers.rounds(_COUNTED):
            for _ in kinds:
                turn += 1
                take(turn)
        ready()
    share = WORD * words * len(cores) / GIB
    output.note(
        f"{share:.2f} GiB filled of {ask.gib:.2f}; verifying took "
        f"{verified_s / spent_s:.0%} of the processor time of the turns"
    )
    for name, tally in tallies.items():
        output.note(f"{name}: {tally.spread(3)} turns")
        tally.report(output, random_names(name), name)
    output.end()
