"""The disks' own word on their health."""

from __future__ import annotations

import pytest

from acceptance.check import Check
from acceptance.command import ProgramMissing
from acceptance.observe import storage
from acceptance.observe.inventory import Inventory
from acceptance.program import Programs
from acceptance.tools import smartctl
from acceptance.tools.reading import UnreadableOutput


class ReportsUnread(Exception):
    """smartctl did not answer for a disk, or cannot be understood: that is no known lack of a report, so no waiver of one covers it."""


@pytest.mark.session("host-before")
@pytest.mark.costs(1.0)
@pytest.mark.measures("disk_faults", unit="count", per="disk")
def test_smart_health(inventory: Inventory, programs: Programs, check: Check) -> None:
    """The SMART report of every disk: overall health, critical warnings, media errors, spare.

    Measured: faults that the drive itself reports. Not measured: its speed, and faults that it hides.
    """
    readings: dict[str, float] = {}
    skipped: dict[str, str] = {}
    notes: dict[str, str | None] = {}
    unread: list[str] = []
    for disk in inventory.disks:
        try:
            faults = smartctl.faults(storage.health(disk, deadline=programs.deadline, run=programs.run))
        except (ProgramMissing, smartctl.NotReadable) as error:
            skipped[disk.component] = str(error)
            continue
        except (UnreadableOutput, smartctl.Interrupted) as error:
            unread.append(f"{disk.component}: {error}")
            continue
        readings[disk.component] = float(len(faults))
        notes[disk.component] = "; ".join(faults) or None
    serials = {disk.component: disk.serial for disk in inventory.disks}
    check("disk_faults", readings, skipped=skipped, notes=notes, serials=serials)
    if unread:
        raise ReportsUnread("; ".join(unread))
