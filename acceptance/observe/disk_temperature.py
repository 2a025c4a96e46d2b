"""A disk's own thermometer, as the kernel shows it (hwmon): of NVMe drives the composite
temperature, of SATA drives where the module drivetemp is loaded.

Linux, drivers/nvme/host/hwmon.c and drivers/hwmon/drivetemp.c: `temp1_input`, and where the drive
states them `temp1_max` (NVMe: its warning temperature) and `temp1_crit` (its critical one), in
thousandths of a degree Celsius.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.parts import Component
from acceptance.machine.inventory import Disk
from acceptance.machine.thresholds import thresholds
from acceptance.observe import sysfs


@dataclass(frozen=True, slots=True)
class Thermometer:
    """Where the temperature of a disk stands, and the drive's own thresholds, None where none."""

    input: Path
    warning_c: float | None
    critical_c: float | None

    @property
    def limit_c(self) -> float | None:
        """The temperature above which the drive itself warns, else its critical one."""
        return self.critical_c if self.warning_c is None else self.warning_c

    def now(self) -> float | None:
        """The temperature at this moment; None where the drive does not answer with one."""
        value = _celsius(self.input)
        low, high = thresholds().range.disk_c.between
        return value if value is not None and low < value < high else None


def find(name: str, root: Path = Path("/")) -> Thermometer | None:
    """The thermometer of a disk by its name; None for a disk without one."""
    device = root / "sys/class/block" / name / "device"
    # A multipath NVMe disk is below its subsystem, which lists its controllers.
    controllers = [one for one in sysfs.entries(device) if re.fullmatch(r"nvme\d+", one.name)]
    for place in (device, *controllers):
        # Before Linux 5.16 the device of an NVMe controller has it, not the controller.
        for folder in (place, place / "device"):
            for hwmon in (*sysfs.entries(folder), *sysfs.entries(folder / "hwmon")):
                found = hwmon / "temp1_input"
                if re.fullmatch(r"hwmon\d+", hwmon.name) and found.exists():
                    return Thermometer(
                        found, _threshold(hwmon / "temp1_max"), _threshold(hwmon / "temp1_crit")
                    )
    return None


def limited(disks: Iterable[Disk], root: Path = Path("/")) -> frozenset[Component]:
    """The disks that show their temperature, and a threshold of their own for it."""
    found = ((disk.component, find(disk.name, root)) for disk in disks)
    return frozenset(name for name, one in found if one is not None and one.limit_c is not None)


def _celsius(path: Path) -> float | None:
    value = sysfs.number(path)
    return None if value is None else value / 1000


def _threshold(path: Path) -> float | None:
    value = _celsius(path)
    _, high = thresholds().range.disk_c.between
    return value if value is not None and 0.0 < value < high else None
