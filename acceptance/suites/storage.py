"""The disks' own reports on their health."""

from __future__ import annotations

import pytest

from acceptance.core.component import Component
from acceptance.core.message import Message, Text
from acceptance.machine.inventory import Inventory, known
from acceptance.observe import smart, storage
from acceptance.process.command import ProgramMissing
from acceptance.process.unreadable import UnreadableOutput
from acceptance.session.check import Check
from acceptance.session.programs import Programs
from acceptance.wording.errors import WordedError, said


class ReportsUnread(WordedError):
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
    readings: dict[Component, float] = {}
    worn: dict[Component, float] = {}
    unworn: dict[Component, Text] = {}
    skipped: dict[Component, Text] = {}
    notes: dict[Component, Message | None] = {}
    unread: list[Message] = []
    disks = known(inventory.disks)
    tells_wear = {disk.component for disk in disks if disk.kind == "nvme"}
    for disk in disks:
        try:
            health = storage.health(disk, deadline=programs.deadline, run=programs.run)
        except (ProgramMissing, smart.SmartUnreadable) as error:
            skipped[disk.component] = said(error)
            continue
        except (UnreadableOutput, smart.SmartInterrupted) as error:
            values = {"component": str(disk.component), "why": said(error)}
            unread.append(Message("component_says", values))
            continue
        faults = smart.faults(health)
        readings[disk.component] = float(len(faults))
        notes[disk.component] = Message("clauses", {"why": faults}) if faults else None
        if disk.component in tells_wear:
            if health.percentage_used is None:
                unworn[disk.component] = Message("wear_not_told")
            else:
                worn[disk.component] = health.percentage_used / 100
    serials: dict[Component, str | None] = {disk.component: disk.serial for disk in disks}
    check("disk_faults", readings, skipped=skipped, notes=notes, serials=serials)
    unread_wear = {name: why for name, why in skipped.items() if name in tells_wear}
    check("disk_wear", worn, skipped={**unread_wear, **unworn}, serials=serials)
    if unread:
        raise ReportsUnread("clauses", why=tuple(unread))
