"""The collective operations, their sizes and their bus bandwidth, as nccl-tests defines them. Pure.

Source: nccl-tests, doc/PERFORMANCE.md, and `GetCollByteCount` and `GetBw` of each test. Algorithm
bandwidth is S / t, bus bandwidth that times a factor, so that it compares with the rate of the
hardware whatever the number n of ranks. S in bytes:

| operation | S | factor |
|---|---|---|
| all_reduce | the whole buffer, which every rank sends and receives | 2 (n - 1) / n |
| all_gather | what each rank receives: the shares of all ranks | (n - 1) / n |
| reduce_scatter | what each rank sends: the shares of all ranks | (n - 1) / n |
| all_to_all | what each rank sends: a share for each rank, its own too | (n - 1) / n |
| broadcast | the whole buffer, which the root sends | 1 |
| send_receive | what the sender sends | 1 |

One difference: in nccl-tests' send-receive every rank sends to the next one at the same time; here
one rank sends and one receives, for each ordered pair of ranks.

Sizes go from 8 bytes to 4 GiB, as memory and time allow. Up to 1 GiB each is eight times the one
before, so the small and the large protocols of NCCL are both used (LL, LL128, Simple), and 16 MiB,
128 MiB and 1 GiB are among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from acceptance.core.limit import GIB
from acceptance.loads.miscompare import CollectiveCheck

OPERATIONS: tuple[CollectiveCheck, ...] = get_args(CollectiveCheck)
_DIVIDED: frozenset[CollectiveCheck] = frozenset({"all_gather", "reduce_scatter", "all_to_all"})
STEP = 8
SIZES: tuple[int, ...] = (*(8 * STEP**number for number in range(10)), 4 * GIB)
BUFFERS = 2  # of the size: source and destination
_ALIGNED = 16  # bytes: NCCL's own granularity, to which nccl-tests rounds a share down


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation between `ranks` ranks.

    `source` is the root of a broadcast or the sender, `destination` the receiver; the other
    operations use neither. Raises ValueError for fewer than two ranks, for an end that is no rank,
    and for a rank that would send to itself.
    """

    name: CollectiveCheck
    ranks: int
    source: int = 0
    destination: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 2:
            raise ValueError(f"{self.name} needs two ranks, not {self.ranks}")
        if not {self.source, self.destination} <= set(range(self.ranks)):
            raise ValueError(f"{self.source} and {self.destination} are not both ranks")
        if self.name == "send_receive" and self.source == self.destination:
            raise ValueError(f"rank {self.source} cannot send to itself")

    @property
    def factor(self) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        if self.name == "all_reduce":
            return 2 * (self.ranks - 1) / self.ranks
        return (self.ranks - 1) / self.ranks if self.name in _DIVIDED else 1.0

    @property
    def in_place(self) -> bool:
        """Whether source and destination are one buffer, as torch.distributed has it."""
        return self.name in ("all_reduce", "broadcast")

    @property
    def shares(self) -> int:
        """The shares that S consists of: one for each rank, or one."""
        return self.ranks if self.name in _DIVIDED else 1

    def share(self, size: int, itemsize: int) -> int:
        """Elements of a share, for an S of at most `size` bytes where that is possible.

        A share of 16 bytes or more is rounded down to a multiple of 16, as in nccl-tests. A smaller
        one is at least one element, where nccl-tests would send nothing: S may then exceed `size`.
        """
        bytes_ = size // self.shares
        if self.name in _DIVIDED and bytes_ >= _ALIGNED:
            bytes_ -= bytes_ % _ALIGNED
        return max(1, bytes_ // itemsize)

    def size(self, share: int, itemsize: int) -> int:
        """S in bytes."""
        return share * self.shares * itemsize

    def takes_part(self, rank: int) -> bool:
        """Whether this rank sends or receives."""
        return self.name != "send_receive" or rank in (self.source, self.destination)

    def sends(self, rank: int, share: int) -> int:
        """Elements that this rank has in its source."""
        match self.name:
            case "reduce_scatter" | "all_to_all":
                return share * self.ranks
            case "broadcast" | "send_receive":
                return share if rank == self.source else 0
            case _:
                return share

    def receives(self, rank: int, share: int) -> int:
        """Elements of this rank's destination."""
        match self.name:
            case "all_gather" | "all_to_all":
                return share * self.ranks
            case "send_receive":
                return share if rank == self.destination else 0
            case _:
                return share

    def bus_rate(self, size: int, seconds: float) -> float:
        """Bus bandwidth in GB/s of 10**9 bytes, of an operation of `size` bytes."""
        return size / seconds / 1e9 * self.factor


def pairs(ranks: int) -> tuple[tuple[int, int], ...]:
    """All ordered pairs of ranks."""
    every = range(ranks)
    return tuple((source, end) for source in every for end in every if source != end)


def fitting(room: int, work: int) -> tuple[int, ...]:
    """The sizes for which a rank has memory.

    `room` is its free memory and `work` what verifying needs besides the buffers, in bytes. Raises
    ValueError where not even the smallest size fits.
    """
    found = tuple(size for size in SIZES if BUFFERS * size + work <= room)
    if not found:
        raise ValueError(f"{room / GIB:.2f} GiB of free memory are too little for any size")
    return found


def affordable(size: int, done: int, took_s: float, left_s: float) -> bool:
    """Whether `size` ends within `left_s` seconds, after `done` bytes took `took_s`.

    Time is taken to grow with the size. A part of it does not, so that sound hardware is rarely
    slower.
    """
    return took_s * size / done <= left_s
