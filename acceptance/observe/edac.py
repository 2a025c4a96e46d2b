"""The memory errors that the kernel's drivers count (EDAC), by memory controller.

Documentation/admin-guide/RAS/main.rst of Linux: `ce_count` and `ue_count` of a controller count all
of its corrected and uncorrected errors, also those that the kernel log was told not to show
(`edac_mc_log_ce`).
"""

from __future__ import annotations

import re
from pathlib import Path

from acceptance.observe import sysfs

CORRECTED, UNCORRECTED = "ce_count", "ue_count"


def read(root: Path = Path("/")) -> dict[str, int]:
    """The counters as "mc0/ce_count"; empty where no driver counts any.

    Raises SysfsError for a file with an unknown value.
    """
    found = {}
    for controller in sysfs.entries(root / "sys/devices/system/edac/mc"):
        if re.fullmatch(r"mc\d+", controller.name):
            for name in (CORRECTED, UNCORRECTED):
                if (count := sysfs.number(controller / name)) is not None:
                    found[f"{controller.name}/{name}"] = count
    return found
