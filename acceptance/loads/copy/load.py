"""The copy load of one GPU: every data path to, from and inside it, timed, all data verified.

    python -m acceptance.loads gpu_copy seconds=1 peers=1

The GPU is the first that the process sees, `gpu0`; all others that it sees are its peers, `gpu1`
and so on (CUDA_VISIBLE_DEVICES sets which and in what order), and must be as many as `peers`.
`seconds` is the time for which each path is copied and compared, of those to the peers their time
together, at least 0.1 s each. The whole load takes about eight times as long for one GPU, and ten
seconds for torch and the buffers.

The loads of several GPUs may run at once. With `turns` they share a folder, in which they take
turns (`turns`). What is private to a GPU runs beside that of the others without waiting: copies
within it, and the elementwise products. Then come the paths between host and GPU, of one GPU at a
time in each group that shares them (`link` names the group). The paths to the peers are last, of
one GPU alone, while no load copies or computes anything else. While a load waits for its turn,
nothing of it runs on a GPU or a link. Its buffers exist only in their turn; torch keeps the pinned
ones, twice `mib`, to its end. A load that died holds no turn. Without `turns` it takes none, and is
to run by itself.

Paths, in GB/s of 10**9 bytes, each the median of single copies of `mib` MiB (512):

- `copy_own_h2d`, `copy_own_d2h`: between pinned host memory and the GPU, each by itself (beside
  others, GPUs of other groups may copy at the same time);
- `copy_own_h2d_bidirectional`, `_d2h_bidirectional`: the same while copies in the other direction
  keep running;
- `copy_own_h2d_pageable`, `_d2h_pageable`: ordinary host memory; the driver's own staging and the
  processor limit it, not the link;
- `copy_own_d2d`: within the GPU's memory, read and write both counted, in buffers of 4 GiB (less
  where a quarter of the free memory is less; never below four times the L2 cache, so that the cache
  does not serve it), while other GPUs do the same;
- `copy_own_p2p` of `gpu0->gpuN`: gpu0 writes into a peer, bytes counted once; absent with its
  count of wrong copies where torch says that it cannot reach it.

Host memory is that of the GPU's own NUMA node, where the kernel names one (`numa`): the process
runs on that node's CPUs only, from before its buffers exist. A table has the elementwise products
(`elementwise`).

Every copy is verified bit for bit over its whole length, the warm-up included. The destination is
overwritten before the copy. After it, outside the timed part, it is compared with words that the
comparing side made itself (`pattern`). A copy to a peer goes one way, over a buffer that the peer
overwrote; the peer compares it with words of this source, destination and turn alone. Beside a
bidirectional copy several run in the other direction, into one buffer; the last of those is
compared. `copy_own_miscompares` (`copy_own_p2p_miscompares` for a peer) counts wrong copies,
`elementwise_miscompares` wrong batches of products. Data that was wrong in transit and right in the
end is not seen.

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when CUDA, torch or a
turn failed, host memory was too little or there are other peers, with one sentence on standard
error and no end line; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acceptance.core.message import Message, english
from acceptance.core.parts import Gpu, Pair
from acceptance.loads.card import gpu_identity, uuid
from acceptance.loads.contract import OWN
from acceptance.loads.copy import elementwise, numa, pattern
from acceptance.loads.copy.contract import (
    ELEMENTS,
    PATHS,
    PEER_PATH,
    PEER_READINGS,
    PRODUCT_COLUMNS,
    PRODUCTS,
    Ask,
    pair_seconds,
)
from acceptance.loads.copy.pattern import WORD, first_number
from acceptance.loads.copy.tally import CopyTally, measure_copies
from acceptance.loads.copy.transfers import (
    BidirectionalTransfer,
    DeviceToDevice,
    DeviceToHost,
    HostToDevice,
    PageableTransfer,
    UnidirectionalTransfer,
)
from acceptance.loads.copy.turns import Turns
from acceptance.loads.cpu.memory_bandwidth import available_bytes
from acceptance.loads.miscompare import (
    OWN_COPY_MISCOMPARES,
    OWN_PEER_MISCOMPARES,
    VECTOR_MISCOMPARES,
)
from acceptance.loads.program import LoadError
from acceptance.loads.protocol import Output

CACHE_FACTOR = 4  # size of the buffers of a copy within the GPU, as a multiple of its L2 cache
_MIB = 1 << 20
_LOCAL_BYTES = 4096 * _MIB  # maximum size of each of the two buffers
# Divisor of the free memory for each buffer: there are two, and the comparison needs as much again.
_LOCAL_SHARE = 4
_HOST_BUFFERS = 4
_TO_DEVICE, _TO_HOST = 1, 2  # seeds


def require_host_memory(mib: int, available: int) -> None:
    """Raise LoadError where the host buffers would take over half of the available memory."""
    needed = _HOST_BUFFERS * mib * _MIB
    if 2 * needed > available:
        raise LoadError(
            f"the buffers need {needed / 2**30:.2f} GiB of host memory, more than half of the "
            f"{available / 2**30:.2f} GiB that are"
            " available: free memory"
        )


def local_words(free: int, l2_bytes: int) -> int:
    """Words of each buffer of a copy within a GPU with `free` bytes of free memory.

    Raises LoadError where the buffers would be so small that the L2 cache could serve them.
    """
    size = min(_LOCAL_BYTES, free // _LOCAL_SHARE // _MIB * _MIB)
    if size < max(_MIB, CACHE_FACTOR * l2_bytes):
        raise LoadError(
            f"only {free / 2**30:.2f} GiB of the GPU's memory are free, too little for "
            f"buffers of {CACHE_FACTOR} times its L2 cache"
        )
    return size // WORD


def background_copies(own: float, other: float) -> int:
    """Number of copies that keep the other direction busy for the whole of one copy.

    `own` and `other` are the GB/s of each direction alone.
    """
    return 2 + math.ceil(other / own)


@dataclass(slots=True)
class CopyRun:
    """The state of a running load: its ask, its output, its peers, and its wrong copies.

    `done_s` of the seconds of all paths are over; `wrong` copies stayed on GPU 0 and its host.
    """

    ask: Ask
    output: Output
    peers: Sequence[int]
    done_s: float = 0.0
    wrong: int = 0

    @property
    def pair_s(self) -> float:
        """Seconds of each path to a peer."""
        return pair_seconds(self.ask.seconds, len(self.peers))

    def measure(self, transfer: UnidirectionalTransfer, seconds: float) -> CopyTally:
        """Measure one path, and report it at once."""
        tally = measure_copies(transfer, seconds, self.output.miscompare, self.ask.inject)
        self.output.note(tally.summary(f"{transfer.name} of {transfer.component}"))
        self.output.reading(transfer.name, "GB/s", transfer.component, tally.median)
        self.done_s += seconds
        whole_s = len(PATHS) * self.ask.seconds + len(self.peers) * self.pair_s
        self.output.progress(self.done_s, whole_s)
        return tally

    def measure_own(self, transfer: UnidirectionalTransfer) -> float:
        """Measure one path of GPU 0 alone; returns GB/s."""
        tally = self.measure(transfer, self.ask.seconds)
        self.wrong += tally.wrong
        return tally.median

    def host(self) -> None:
        """Measure the paths between host and GPU: pinned, bidirectional, pageable.

        Raises LoadError where the host buffers would take too much memory.
        """
        import torch

        require_host_memory(self.ask.mib, available_bytes())
        size, count = self.ask.mib * _MIB, self.ask.mib * _MIB // WORD
        reference = np.empty(count, np.uint64)
        pattern.write(reference, first_number(_TO_HOST))
        source, destination = (
            torch.empty(count, dtype=torch.int64, pin_memory=True) for _ in range(2)
        )
        pattern.write(source.numpy().view(np.uint64), first_number(_TO_DEVICE))
        there, here = (torch.empty(count, dtype=torch.int64, device="cuda") for _ in range(2))
        up, down = (
            HostToDevice(source, there, _TO_DEVICE),
            DeviceToHost(here, destination, _TO_HOST, reference),
        )
        h2d = self.measure_own(UnidirectionalTransfer("copy_own_h2d", OWN, size, up))
        d2h = self.measure_own(UnidirectionalTransfer("copy_own_d2h", OWN, size, down))
        for both in (
            BidirectionalTransfer(
                "copy_own_h2d_bidirectional", OWN, size, up, down, background_copies(h2d, d2h)
            ),
            BidirectionalTransfer(
                "copy_own_d2h_bidirectional", OWN, size, down, up, background_copies(d2h, h2d)
            ),
        ):
            self.measure_own(both)
            if both.apart:
                self.output.note(
                    f"{both.name}: the other way was not busy to the end of {both.apart} copies"
                )
        ordinary = torch.from_numpy(reference.view(np.int64))
        self.measure_own(
            PageableTransfer(
                "copy_own_h2d_pageable", OWN, size, HostToDevice(ordinary, there, _TO_HOST)
            )
        )
        pages = torch.zeros(count, dtype=torch.int64)
        self.measure_own(
            PageableTransfer(
                "copy_own_d2h_pageable", OWN, size, DeviceToHost(here, pages, _TO_HOST, reference)
            )
        )

    def measure_local(self, l2_bytes: int) -> None:
        """Measure copies within the GPU's memory."""
        import torch

        count = local_words(torch.cuda.mem_get_info()[0], l2_bytes)
        self.output.note(
            f"copy_own_d2d: buffers of {count * WORD // _MIB} MiB, the L2 cache has "
            f"{l2_bytes / _MIB:.1f} MiB"
        )
        source, destination = (
            torch.empty(count, dtype=torch.int64, device="cuda") for _ in range(2)
        )
        self.measure_own(
            UnidirectionalTransfer(
                "copy_own_d2d",
                OWN,
                2 * count * WORD,
                DeviceToDevice(source, destination, (uuid(0), uuid(0))),
            )
        )

    def peer(self, index: int) -> None:
        """Measure copies into the memory of another GPU."""
        import torch

        count = self.ask.mib * _MIB // WORD
        source = torch.empty(count, dtype=torch.int64, device="cuda")
        destination = torch.empty(count, dtype=torch.int64, device=f"cuda:{index}")
        way = DeviceToDevice(source, destination, (uuid(0), uuid(index)))
        pair = Pair(OWN, Gpu(index))
        path = UnidirectionalTransfer(PEER_PATH, pair, count * WORD, way)
        tally = self.measure(path, self.pair_s)
        self.output.reading(OWN_PEER_MISCOMPARES, "count", pair, tally.wrong)

    def products(self, l2_bytes: int) -> None:
        """Measure the table of elementwise products."""
        self.output.note(elementwise.hump(l2_bytes))
        rows, wrong = [], 0
        for elements in ELEMENTS:
            rate, found = elementwise.measure(elements, self.output.miscompare, self.ask.inject)
            rows.append(elementwise.row(elements, rate))
            wrong += found
        self.output.table(PRODUCTS, PRODUCT_COLUMNS, rows)
        self.output.reading(VECTOR_MISCOMPARES, "count", OWN, wrong)


def run(ask: Ask, output: Output) -> None:
    """Measure all paths, from the first to the last reading.

    Raises LoadError, and RuntimeError for errors of CUDA and torch.
    """
    card = gpu_identity()
    import torch

    others = range(1, torch.cuda.device_count())
    if (count := len(others)) != ask.peers:
        raise LoadError(
            f"CUDA shows {count} GPUs beside the load's own, and copies to {ask.peers} are due: "
            f"give peers={count}, or show it others (CUDA_VISIBLE_DEVICES)"
        )
    output.hello(ask.load, {**ask.parameters(), **card})
    about = torch.cuda.get_device_properties(0)
    output.note(f"{card['gpu']}, compute capability {card['capability']}, {card['library']}")
    output.note(
        numa.pin_process(
            numa.pci_address(about.pci_domain_id, about.pci_bus_id, about.pci_device_id)
        )
    )
    peers = [index for index in others if torch.cuda.can_device_access_peer(0, index)]
    own = CopyRun(ask, output, peers)
    turns = Turns(None if ask.turns is None else Path(ask.turns), ask.link, output)
    with turns.beside():
        own.measure_local(about.L2_cache_size)
        torch.cuda.empty_cache()
        own.products(about.L2_cache_size)
        torch.cuda.empty_cache()
        with turns.on_link():
            own.host()
            torch.cuda.empty_cache()
    output.reading(OWN_COPY_MISCOMPARES, "count", OWN, own.wrong)
    if peers:
        with turns.alone():
            for index in peers:
                own.peer(index)
            torch.cuda.empty_cache()
    for index in others:
        for name in PEER_READINGS if index not in peers else ():
            output.absent(
                name,
                Pair(OWN, Gpu(index)),
                Message(
                    english(
                        "peer_out_of_reach",
                        "torch says that the one GPU cannot reach the other's memory",
                    )
                ),
            )
    output.end()
