"""The state of the ZFS pools, one word of the kernel's module for each.

OpenZFS, `spa_state_to_name` in module/zfs/spa_misc.c: /proc/spl/kstat/zfs/POOL/state.
"""

from __future__ import annotations

from pathlib import Path

from acceptance.core.message import Message
from acceptance.observe import sysfs

_SOUND = "ONLINE"
# A pool that lost redundancy, or data, or that waits for its disks.
_FAULTY = frozenset({"DEGRADED", "FAULTED", "SUSPENDED", "UNAVAIL", "REMOVED", "OFFLINE", "SPLIT"})


def read(root: Path = Path("/")) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The faults of pools, and why the state of one is not known; both empty without a pool."""
    faults: list[Message] = []
    troubles: list[Message] = []
    for pool in sysfs.entries(root / "proc/spl/kstat/zfs"):
        path = pool / "state"
        if not path.exists():  # counters of the module itself, and modules before 0.8
            continue
        state = sysfs.text(path)
        if state is None:
            troubles.append(Message("sys_unread", {"path": str(path)}))
        elif state in _FAULTY:
            faults.append(Message("zfs_pool_faulty", {"pool": pool.name, "state": state}))
        elif state != _SOUND:
            troubles.append(
                Message("zfs_pool_state_unknown", {"pool": pool.name, "state": repr(state[:80])})
            )
    return tuple(faults), tuple(troubles)
