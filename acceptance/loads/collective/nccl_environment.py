"""The variables of NCCL in an arm, in the process of a rank and before torch is imported."""

from __future__ import annotations

import os
from pathlib import Path

from acceptance.loads.miscompare import CollectiveArm

# What NCCL writes to the log of a rank: the subsystems that `tools.read.nccl_log` reads.
NCCL_DEBUG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,P2P,SHM,NET,NVLS,TUNING"}


def set_variables(arm: CollectiveArm, log: Path | None = None) -> None:
    """Set the arm's variables of NCCL, and no others; with `log` it writes one there."""
    for name in [name for name in os.environ if name.startswith("NCCL_")]:
        del os.environ[name]
    if log is not None:
        os.environ |= {**NCCL_DEBUG, "NCCL_DEBUG_FILE": str(log)}
    os.environ["NCCL_NVLS_ENABLE"] = "1" if arm == "multicast" else "0"
    if arm == "p2p_off":
        os.environ["NCCL_P2P_DISABLE"] = "1"
