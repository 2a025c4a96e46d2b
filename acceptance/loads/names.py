"""Names of the loads' readings, and columns of their tables, for loads and readers alike.

`{}` in a name is a format of `acceptance.core.dtype`.
"""

from __future__ import annotations

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import CollectiveArm

OWN = Gpu(0)  # a load's name for its own GPU


# Tables of the storage checks: how long fio's requests took, and what the kernel
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
