"""Names of the loads' readings, and columns of their tables, for loads and readers alike.

`{}` in a name is a format of `acceptance.core.dtype`.
"""

from __future__ import annotations

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import CollectiveArm

OWN = Gpu(0)  # a load's name for its own GPU


# Readings of the storage loads, with their units: of the disk that holds the files.
STORAGE_ARMS = ("cold", "cold_random", "warm", "warm_random")
MEMMAP_READINGS = {
    "storage_memmap_cold": "Mtokens/s",
    "storage_memmap_cold_random": "Mtokens/s",
    "storage_memmap_warm": "Mtokens/s",
    "storage_memmap_warm_random": "Mtokens/s",
    "storage_memmap_miscompares": "count",
}
MEMMAP = "storage_memmap"
MEMMAP_COLUMNS = ("arm", "windows", "Mtokens/s", "asked bytes", "disk bytes", "us p50", "us p99")
FEED_READINGS = {"storage_feed_host": "Mtokens/s", "storage_feed_gpu": "Mtokens/s"}
FEED_MISCOMPARES = "storage_feed_miscompares"
CHECKPOINT_READINGS = {
    "storage_checkpoint_write": "s",
    "storage_checkpoint_read": "s",
    "storage_checkpoint_miscompares": "count",
}
KEPT_ERRORS = "storage_kept_errors"
# Tables that the storage checks record besides: how long fio's requests took, and what the kernel
# counted of the disks meanwhile, with the temperature of the hottest where one has a thermometer.
LATENCIES = ("storage_write", "storage_read", "storage_randread", "storage_randwrite")
LATENCY_COLUMNS = ("share", "us")
STORAGE_OVER_TIME = "storage_over_time"
OVER_TIME = ("s", "read GB/s", "written GB/s")
OVER_TIME_WARM = (*OVER_TIME, "degC")
STORAGE_FULL_CACHE = "storage_full_cache"
FULL_CACHE = ("GiB", "GB/s")
FULL_CACHE_WARM = (*FULL_CACHE, "degC")


# Those of every run; a machine file may ask for the third one.
COLLECTIVE_ARMS: tuple[CollectiveArm, ...] = ("default", "p2p_off")
WITH_MULTICAST: tuple[CollectiveArm, ...] = (*COLLECTIVE_ARMS, "multicast")


def of_arm(name: str, arm: CollectiveArm) -> str:
    """The name of a reading, or of a log, in an arm of the load of collectives."""
    return name if arm == "default" else f"{name}_{arm}"
