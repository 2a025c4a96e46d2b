"""The disks of this machine by the `[[disk]]` tables of its machine file."""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core.parts import Component
from acceptance.core.plain_text import same_text
from acceptance.machine.inventory import Disk, Inventory, known
from acceptance.machine.machine_file import DeclaredDisk, Machine
from acceptance.machine.thresholds import thresholds


def describes(declared: DeclaredDisk, disk: Disk) -> bool:
    """Whether a disk matches a declaration."""
    return (
        same_text(declared.model, disk.model)
        and (declared.serial is None or same_text(declared.serial, disk.serial))
        and (declared.firmware is None or same_text(declared.firmware, disk.firmware))
        and (
            declared.size_gb is None
            or known(disk.size_bytes) >= thresholds().disk.declared * declared.size_gb * 1e9
        )
    )


def assign_disks(declared: Sequence[DeclaredDisk], disks: Sequence[Disk]) -> list[list[Disk]]:
    """The disks of each declaration, in order.

    No disk counts twice, and no declaration gets more than it declares. Declarations with a serial
    choose first, then those with a firmware, then the larger ones; a disk is handed on where its
    declaration can take another, so that as many as possible are met.
    """
    holders: dict[int, int] = {}  # the declaration of each disk, both by number

    def finds(wanted: int, tried: set[int]) -> bool:
        for number, disk in enumerate(disks):
            if number in tried or not describes(declared[wanted], disk):
                continue
            tried.add(number)
            if number not in holders or finds(holders[number], tried):
                holders[number] = wanted
                return True
        return False

    def choosy(index: int) -> tuple[bool, bool, int]:
        one = declared[index]
        return one.serial is None, one.firmware is None, -(one.size_gb or 0)

    for index in sorted(range(len(declared)), key=choosy):
        for _ in range(min(declared[index].count, len(disks))):
            finds(index, set())
    return [
        [disk for number, disk in enumerate(disks) if holders.get(number) == index]
        for index in range(len(declared))
    ]


def new_disks(machine: Machine | None, inventory: Inventory) -> tuple[Component, ...]:
    """The disks that are declared as new.

    One more of a model than its tables declare counts as new where one of these does.
    """
    declared, disks = machine.disk if machine else (), known(inventory.disks)
    assigned = assign_disks(declared, disks)
    used = {
        disk.name
        for table, found in zip(declared, assigned, strict=True)
        for disk in found
        if not table.new
    }
    return tuple(
        disk.component
        for disk in disks
        if disk.name not in used and any(one.new and describes(one, disk) for one in declared)
    )
