"""Names of the loads' readings, and columns of their tables, for loads and readers alike.

`{}` in a name is a format of `acceptance.core.dtype`.
"""

from __future__ import annotations

from acceptance.core.parts import Gpu
from acceptance.loads.miscompare import CollectiveArm, CollectiveCheck

OWN = Gpu(0)  # a load's name for its own GPU

# Readings of the burn, with their units.
BURN_READINGS = {"burn_{}": "TFLOP/s", "burn_{}_kept": "ratio", "burn_{}_miscompares": "count"}
BURN_OF_GPU = {"burn_filled": "ratio", "burn_copied": "GiB", "burn_copy_miscompares": "count"}
BURN_OF_PEER = {"burn_peer_copied": "GiB", "burn_peer_miscompares": "count"}

BURN_LAPS = "burn_laps"
LAPS = ("lap", "format", "TFLOP/s", "products", "seconds", "from s", "to s")
LAP_ROWS = 500  # most rows in the table of laps; of more turns it has the first and last 250
BURN_DIGESTS = "burn_digests"
DIGESTS = ("format", "shape", "inputs", "result")

# Readings of the load of collectives: of all ranks together, of each path and of each rank; of the
# arms besides the default one with their name behind (`of_arm`).
COLLECTIVE_RATES = {
    "all_reduce": "collective_all_reduce",
    "all_gather": "collective_all_gather",
    "reduce_scatter": "collective_reduce_scatter",
    "all_to_all": "collective_all_to_all",
    "broadcast": "collective_broadcast",
}
COLLECTIVE_OF_GROUP = {
    **dict.fromkeys(COLLECTIVE_RATES.values(), "GB/s"),
    "collective_latency": "us",
    "collective_disagreements": "count",
}
COLLECTIVE_OF_PATH = {
    "collective_send_receive": "GB/s",
    "collective_send_receive_miscompares": "count",
}
COLLECTIVE_OF_RANK = {"collective_miscompares": "count"}
# In every format besides float32 where so many ranks have exact sums.
COLLECTIVE_SUMS: tuple[CollectiveCheck, ...] = ("all_reduce", "reduce_scatter")
# Between two nodes, besides a send-receive each way.
COLLECTIVE_PAIR_OPERATIONS: tuple[CollectiveCheck, ...] = ("all_reduce", "all_gather")
COLLECTIVES = "collectives"
COLLECTIVE_COLUMNS = (
    "arm",
    "operation",
    "component",
    "format",
    "bytes",
    "turns",
    "compared",
    "us",
    "GB/s",
)
SLOW_PATHS = "collective_slow_paths"
SLOW_PATH_COLUMNS = ("arm", "slow path", "tried", "GB/s", "again GB/s")
NCCL_LOG = "nccl"  # the log of each rank, in each arm

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
