"""The disks' own reports on their health."""

from __future__ import annotations

import pytest

from acceptance.core.plain_text import UnreadableOutput
from acceptance.machine.inventory import Inventory, known
from acceptance.observe import smart, storage
from acceptance.process.command import ProgramMissing
from acceptance.session.check import Check
from acceptance.session.programs import Programs


class ReportsUnread(Exception):
    """smartctl did not answer for a disk, or its answer is not understood.

    This differs from a disk that is known to have no report, so no waiver of that covers it.
    """


@pytest.mark.session("host-before")
@pytest.mark.costs(1.0)
@pytest.mark.measures("disk_faults", "disk_wear")
def test_smart_health(inventory: Inventory, programs: Programs, check: Check) -> None:
    """The SMART report of every disk: overall health, critical warnings, media errors, spare; of
    NVMe disks how far they are worn.

    Measured: faults that the drive itself reports, and the used share of its rated life. Not
    measured: its speed, and faults that it hides.
    """
    readings: dict[str, float] = {}
    worn: dict[str, float] = {}
    unworn: dict[str, str] = {}
    skipped: dict[str, str] = {}
    notes: dict[str, str | None] = {}
    unread: list[str] = []
    disks = known(inventory.disks)
    tells_wear = {disk.component for disk in disks if disk.kind == "nvme"}
    for disk in disks:
        try:
            health = storage.health(disk, deadline=programs.deadline, run=programs.run)
        except (ProgramMissing, smart.SmartUnreadable) as error:
            skipped[disk.component] = str(error)
            continue
        except (UnreadableOutput, smart.SmartInterrupted) as error:
            unread.append(f"{disk.component}: {error}")
            continue
        faults = smart.faults(health)
        readings[disk.component] = float(len(faults))
        notes[disk.component] = "; ".join(faults) or None
        if disk.component in tells_wear:
            if health.percentage_used is None:
                unworn[disk.component] = (
                    "its health log does not tell how far it is worn: update smartmontools"
                )
            else:
                worn[disk.component] = health.percentage_used / 100
    serials = {disk.component: disk.serial for disk in disks}
    check("disk_faults", readings, skipped=skipped, notes=notes, serials=serials)
    unread_wear = {name: why for name, why in skipped.items() if name in tells_wear}
    check("disk_wear", worn, skipped={**unread_wear, **unworn}, serials=serials)
    if unread:
        raise ReportsUnread("; ".join(unread))
