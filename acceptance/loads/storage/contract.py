"""The contracts of the storage loads, which write and read files of ours on one disk.

The modules by their names say what each measures and what not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from acceptance.core.parts import Component, parse
from acceptance.loads import contract
from acceptance.loads.contract import Due, Seconds
from acceptance.loads.miscompare import FILE_MISCOMPARES
from acceptance.loads.protocol import LoadOutput

Kind = Literal["rest", "stale", "elsewhere", "short", "flight"]
# The faults on purpose: what sits wrong on the disk, or comes wrong from it.
KINDS: Mapping[Kind, str] = {
    "rest": "one bit of the file is inverted after it was written",
    "stale": "a block holds what an earlier file had there, as where a write was lost",
    "elsewhere": "a block holds another block of the file, as where a write went astray",
    "short": "the end of the file is missing",
    "flight": "one bit of what was read is inverted; the file is right",
}
LEAST = 1 << 18  # bytes: enough for several windows, blocks and shards
MOST = 1 << 37  # the words of a file have numbers of their own up to here (`tokens.PLACE_BITS`)

ARMS = ("cold", "cold_random", "warm", "warm_random")
MEMMAP = "storage_memmap"  # the load, its file and its table
MEMMAP_COLUMNS = ("arm", "windows", "Mtokens/s", "asked bytes", "disk bytes", "us p50", "us p99")
MEMMAP_MISCOMPARES = FILE_MISCOMPARES["memmap"]
MEMMAP_READINGS: Mapping[str, str] = {
    "storage_memmap_cold": "Mtokens/s",
    "storage_memmap_cold_random": "Mtokens/s",
    "storage_memmap_warm": "Mtokens/s",
    "storage_memmap_warm_random": "Mtokens/s",
    MEMMAP_MISCOMPARES: "count",
}
FEED = "storage_feed"
FEED_HOST, FEED_GPU = "storage_feed_host", "storage_feed_gpu"
FEED_MISCOMPARES = FILE_MISCOMPARES["feed"]
CHECKPOINT = "storage_checkpoint"
CHECKPOINT_MISCOMPARES = FILE_MISCOMPARES["checkpoint"]
CHECKPOINT_READINGS: Mapping[str, str] = {
    "storage_checkpoint_write": "s",
    "storage_checkpoint_read": "s",
    CHECKPOINT_MISCOMPARES: "count",
}
KEPT = "storage_kept"
KEPT_ERRORS = FILE_MISCOMPARES["kept"]

# Tables of the storage checks: how long fio's requests took, and what the kernel counted of the
# disks meanwhile, with the temperature of the hottest where one has a thermometer.
LATENCIES = ("storage_write", "storage_read", "storage_randread", "storage_randwrite")
LATENCY_COLUMNS = ("share", "us")
STORAGE_OVER_TIME = "storage_over_time"
OVER_TIME = ("s", "read GB/s", "written GB/s")
OVER_TIME_WARM = (*OVER_TIME, "degC")
STORAGE_FULL_CACHE = "storage_full_cache"
FULL_CACHE = ("GiB", "GB/s")
FULL_CACHE_WARM = (*FULL_CACHE, "degC")


class OnDisk(contract.Ask, frozen=True, kw_only=True):
    """What every storage load is asked."""

    folder: Annotated[
        str, Meta(min_length=1, max_length=4095, description="a folder of ours on the disk")
    ]
    component: Annotated[
        str, Meta(pattern=r"\Adisk:.", description="the disk under it, such as disk:nvme0n1")
    ]
    bytes: Annotated[
        int, Meta(ge=LEAST, le=MOST, description="the most that lies on the disk at a time")
    ]
    inject: Annotated[
        Kind | None,
        Meta(description="; ".join(f"{kind}: {what}" for kind, what in KINDS.items())),
    ] = None

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"folder"})

    @property
    def disk(self) -> Component:
        """The disk that the figures belong to."""
        return parse(self.component)

    def _of_disk(self, readings: Mapping[str, str]) -> dict[contract.ReadingKey, str]:
        return {(name, self.disk): unit for name, unit in readings.items()}


class Memmap(OnDisk, tag=MEMMAP, frozen=True, kw_only=True):
    """Copy random windows of a memory-mapped token file, cold and warm, and verify them."""

    seconds: Annotated[Seconds, Meta(description="of copying, a quarter for each arm")]

    def due(self, output: LoadOutput) -> Due:
        """The rate of each arm and the count, and the table of the arms."""
        return Due(self._of_disk(MEMMAP_READINGS), tables={MEMMAP: MEMMAP_COLUMNS})

    def least_s(self, output: LoadOutput) -> float:
        """All of the time: each arm ends when its quarter is over."""
        return self.seconds


class Feed(OnDisk, tag=FEED, frozen=True, kw_only=True):
    """Read a token file in order into host memory, or on to a GPU, and verify every token."""

    seconds: Annotated[Seconds, Meta(description="of reading; passes begin until they are over")]
    gpu: Annotated[bool, Meta(description="on to the first GPU that it sees")] = False

    # `gpu` is the model there.
    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"folder", "gpu"})

    def due(self, output: LoadOutput) -> Due:
        """The rate to where the tokens go, and the count."""
        rate = FEED_GPU if self.gpu else FEED_HOST
        return Due(self._of_disk({rate: "Mtokens/s", FEED_MISCOMPARES: "count"}))

    def least_s(self, output: LoadOutput) -> float:
        """All of the time."""
        return self.seconds


class Checkpoint(OnDisk, tag=CHECKPOINT, frozen=True, kw_only=True):
    """Write a checkpoint of a training state in shards, read it back, and verify it."""

    def due(self, output: LoadOutput) -> Due:
        """The seconds each way, and the count."""
        return Due(self._of_disk(CHECKPOINT_READINGS))


class Canary(OnDisk, tag=KEPT, frozen=True, kw_only=True):
    """Write and seal the file that stays, or read that of an earlier run, and verify it."""

    way: Annotated[
        Literal["write", "read"], Meta(description="write a new file, or read the one there")
    ]
    machine: Annotated[
        str, Meta(min_length=1, max_length=256, description="the id of this machine")
    ]

    UNREPEATED: ClassVar[frozenset[str]] = frozenset({"folder", "way"})

    def __post_init__(self) -> None:
        if self.way == "read" and self.inject not in (None, "flight"):
            raise ValueError(f"inject={self.inject} damages a file, and this one is only read")

    def due(self, output: LoadOutput) -> Due:
        """The count of wrong blocks."""
        return Due(self._of_disk({KEPT_ERRORS: "count"}))
