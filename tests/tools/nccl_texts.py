"""NCCL's logs as several versions write them, made after public sources; none is a recording.

The forms are those of NCCL's format strings (github.com/NVIDIA/nccl: src/debug.cc, src/init.cc,
src/transport/{p2p,shm,net,nvls}.cc, src/graph/{paths,rings}.cc, src/enqueue.cc) and of logs in
public issues: of 2.18 to 2.21 in NVIDIA/nccl#1412, #1591 and NVIDIA/nccl-tests#252, #273; of 2.25
in NVIDIA/nccl#1637; of 2.30.4, with `[Rank 0]` and no end at `Init COMPLETE`, in a report of 2026;
"P2P is disabled" in NVIDIA/TensorRT-LLM#2225, "Could not enable P2P" and PCI addresses in brackets
in NVIDIA/nccl#1516. Host names, numbers of processes and addresses are invented.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

HOST = "box"
P2P = "P2P/CUMEM"
SHM = "SHM/direct/direct"
# The transport from one rank to another.
Via = Callable[[int, int], str]


@dataclass(frozen=True)
class Version:
    """What differs between versions."""

    name: str
    function: str = "ncclCommInitRankConfig "
    begin: str = ""  # before a rank that begins
    lazy: bool = True  # whether connections come after `Init COMPLETE`
    brackets: str = "nvml"  # behind a rank: NVML's index, or the PCI address
    algorithms: str = "AllReduce: {0} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..{1}}}"


def kinds(first: int, second: int) -> str:
    """Of four GPUs a pair of each kind, so that another rank is another transport."""
    ends = {first, second}
    return P2P if ends == {0, 1} else "NET/Socket/0" if ends == {2, 3} else SHM


V2_18_OLD = Version(
    "2.18.1+cuda12.1",
    function="",
    lazy=False,
    brackets="bus",
    algorithms="{0} Bytes -> Algo 1 proto 2 time 41.250000",
)
V2_18 = Version("2.18.5+cuda12.2", function="", lazy=False, algorithms=V2_18_OLD.algorithms)
V2_21 = Version(
    "2.21.5+cuda12.4",
    function="ncclCommInitRank ",
    lazy=False,
    algorithms="AllReduce: {0} Bytes -> Algo 1 proto 2 time 41.250000",
)
V2_25 = Version("2.25.1+cuda12.8")
V2_28 = Version("2.28.9+cuda13.0")
V2_30 = Version("2.30.7+cuda13.3", function="ncclCommInitRank ", begin="[Rank {rank}] ")
VERSIONS = (V2_18_OLD, V2_18, V2_21, V2_25, V2_28, V2_30)


def bus(rank: int) -> str:
    """NCCL's number for the PCI address of a rank's GPU."""
    return f"{0x10 + rank:x}000"


def address(rank: int) -> str:
    """The PCI address of a rank's GPU."""
    return f"0000:{0x10 + rank:02x}:00.0"


def processes(
    ranks: int = 2,
    via: Via = lambda _first, _second: P2P,
    version: Version = V2_28,
    *,
    channels: int = 2,
    exchange: bool = False,
    extra: Sequence[str] = (),
) -> list[str]:
    """The log of each rank's process. `exchange`: every rank has also sent to every other."""
    return [
        "".join(
            f"{HOST}:{100 + rank}:{200 + rank} [{rank}] NCCL INFO {message}\n"
            for message in _messages(rank, ranks, via, version, channels, exchange, extra)
        )
        for rank in range(ranks)
    ]


def _messages(
    rank: int,
    ranks: int,
    via: Via,
    version: Version,
    channels: int,
    exchange: bool,
    extra: Sequence[str],
) -> list[str]:
    nvml = "" if version.brackets == "bus" else f"nvmlDev {rank} "
    own = (
        f"{version.function}comm 0x55d8db2521{rank:02x} rank {rank} nranks {ranks} cudaDev {rank} "
        f"{nvml}busId {bus(rank)} commId 0xc4cf3e318640a470 - Init "
    )
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    up = rank - 1
    down = rank + 1 if rank + 1 < ranks else -1
    connections = [
        *(_way(channel, 0, rank, after, via, version) for channel in range(channels)),
        "Connected all rings, use ring PXN 0 GDR 1" if version.lazy else "Connected all rings",
        *(
            _way(channel, 0, rank, other, via, version)
            for channel in range(channels)
            for other in (up, down)
            if other not in (-1, after)
        ),
        "Connected all trees",
    ]
    sends = [
        _way(0, 1, rank, other, via, version)
        for other in range(ranks)
        if exchange and other != rank
    ]
    rings = [
        f"Channel {channel:02d}/{channels:02d} : {' '.join(map(str, range(ranks)))}"
        for channel in range(channels)
        if rank == 0
    ]
    trees = " ".join(f"[{channel}] {down}/-1/-1->{rank}->{up}" for channel in range(channels))
    return [
        "cudaDriverVersion 13000",
        f"NCCL version {version.name}",
        "NET/Socket : Using [0]eth0:10.0.0.1<0>",
        "Using network Socket",
        *extra,
        f"{version.begin.format(rank=rank)}{own}START",
        "Bootstrap timings total 0.036238 (create 0.000045, send 0.030891)",
        f"NVLS multicast support is not available on dev {rank}",
        f"comm 0x55d8db2521{rank:02x} rank {rank} nRanks {ranks} nNodes 1 localRanks {ranks} "
        f"localRank {rank} MNNVL 0",
        *rings,
        f"Trees {trees}",
        "P2P Chunksize set to 524288",
        *(() if version.lazy else connections),
        "threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
        f"{channels} coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels",
        f"{own}COMPLETE",
        f"Init timings - ncclCommInitRank: rank {rank} nranks {ranks} total 0.33 (kernels 0.24)",
        *(connections if version.lazy else ()),
        *sends,
        *((version.algorithms.format(1 << 30, channels - 1),) if rank == 0 else ()),
        f"comm 0x55d8db2521{rank:02x} rank {rank} nranks {ranks} cudaDev {rank} busId {bus(rank)} "
        f"- Destroy COMPLETE",
        f"[Proxy Service] Device {before} CPU core 20",
    ]


def _way(channel: int, connection: int, first: int, second: int, via: Via, version: Version) -> str:
    how = via(first, second)
    named = bus if version.brackets == "bus" else str
    # SHM names no connection, NET says which end it is
    number = f"{channel:02d}" if how.startswith("SHM") else f"{channel:02d}/{connection}"
    end = "[send] " if how.startswith("NET") else ""
    return f"Channel {number} : {first}[{named(first)}] -> {second}[{named(second)}] {end}via {how}"
