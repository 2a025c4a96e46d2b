"""The machine's parts against the declarations of its machine file.

A fact that is not declared is not due.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from acceptance.core.limit import GIB
from acceptance.machine.inventory import Disk, Inventory, known
from acceptance.machine.machine_file import DeclaredDisk, Machine
from acceptance.session.check import Check, same_text

DISK_SHARE = 0.98  # makers round sizes; 2 % less is another model


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures(
    "cpu_sockets",
    "cpu_cores",
    "cpu_threads",
    "cpu_model_differs",
    "cpu_governor_differs",
)
def test_cpu(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Processor model, sockets, cores, threads and governor.

    Measured: the processors that the kernel has online. A core that the firmware switched off is
    missing here.
    """
    cpu = inventory.cpu
    unread = {"cpu": "the kernel shows no processor topology"}
    for name, value in (
        ("cpu_sockets", cpu.sockets),
        ("cpu_cores", cpu.cores),
        ("cpu_threads", cpu.threads),
    ):
        check(name, {} if value is None else {"cpu": float(value)}, skipped=unread)
    if machine is not None and machine.cpu.model is not None:
        differs = (
            {"cpu": float(not same_text(machine.cpu.model, cpu.model))}
            if cpu.model is not None
            else {}
        )
        unread = {"cpu": "the kernel shows no processor model"}
        check("cpu_model_differs", differs, skipped=unread, notes={"cpu": f"found {cpu.model}"})
    if machine is not None and machine.cpu.governor is not None:
        differs = (
            {"cpu": float(not same_text(machine.cpu.governor, cpu.governor))}
            if cpu.governor is not None
            else {}
        )
        unread = {"cpu": "the machine offers no frequency governor (a VM leaves it to its host)"}
        check(
            "cpu_governor_differs", differs, skipped=unread, notes={"cpu": f"found {cpu.governor}"}
        )


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("memory_total", "dimm_count")
def test_memory(inventory: Inventory, check: Check) -> None:
    """RAM in all, and how many modules are plugged in.

    Measured: the RAM that the kernel manages, and the modules in the firmware's tables (root only).
    """
    memory = inventory.memory
    check("memory_total", {"memory": known(memory.total_bytes) / GIB})
    if memory.dimms is None:
        check("dimm_count", {}, skipped={"memory": str(memory.dimms_unread)})
    else:
        check("dimm_count", {"memory": float(len(memory.dimms))})


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures(
    "dimm_present",
    "dimm_size",
    "dimm_rated_speed",
    "dimm_configured_speed",
    "dimm_part_number_differs",
)
def test_dimms(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each declared memory module: there, of its size, rated and running at its speed, of its part
    number.

    Measured: the firmware's tables, read by dmidecode (root only).
    """
    declared = machine.memory.dimm if machine else ()
    found = {dimm.slot: dimm for dimm in inventory.memory.dimms or ()}
    slots = ", ".join(found) or "none"
    for wanted in declared:
        component = f"dimm:{wanted.slot}"
        dimm = found.get(wanted.slot)
        why = {
            component: f"no module is in {wanted.slot}"
            if dimm is None
            else "the firmware's tables do not say"
        }
        if inventory.memory.dimms is None:
            why = {component: str(inventory.memory.dimms_unread)}
            check("dimm_present", {}, skipped=why)
        else:
            check(
                "dimm_present",
                {component: float(dimm is not None)},
                notes={component: f"modules are in: {slots}"},
            )
        size = dimm.size_bytes / GIB if dimm and dimm.size_bytes is not None else None
        for name, value in (
            ("dimm_size", size),
            ("dimm_rated_speed", dimm.rated_mts if dimm else None),
            ("dimm_configured_speed", dimm.configured_mts if dimm else None),
        ):
            check(name, {} if value is None else {component: float(value)}, skipped=why)
        part = dimm.part_number if dimm else None
        if wanted.part_number is not None:
            differs = (
                {} if part is None else {component: float(not same_text(wanted.part_number, part))}
            )
            check(
                "dimm_part_number_differs", differs, skipped=why, notes={component: f"found {part}"}
            )


def describes(declared: DeclaredDisk, disk: Disk) -> bool:
    """Whether a disk matches a declaration."""
    return (
        same_text(declared.model, disk.model)
        and (declared.serial is None or same_text(declared.serial, disk.serial))
        and (
            declared.size_gb is None
            or known(disk.size_bytes) >= DISK_SHARE * declared.size_gb * 1e9
        )
    )


def assign_disks(declared: Sequence[DeclaredDisk], disks: Sequence[Disk]) -> list[list[Disk]]:
    """The disks of each declaration, in order.

    No disk counts twice, and no declaration gets more than it declares. Declarations with a serial
    choose first, then the larger ones, so that the remaining disks still fit the other
    declarations.
    """
    free = list(disks)
    found: list[list[Disk]] = [[] for _ in declared]
    choosy = sorted(
        enumerate(declared), key=lambda one: (one[1].serial is None, -(one[1].size_gb or 0))
    )
    for index, wanted in choosy:
        found[index] = [disk for disk in free if describes(wanted, disk)][: wanted.count]
        free = [disk for disk in free if disk not in found[index]]
    return found


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("disk_count")
def test_disks(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each declared disk model, as often as declared, with its serial and at least its size.

    Measured: the disks that the kernel lists, each counted for one declaration. Undeclared disks
    are no fault.
    """
    declared, disks = machine.disk if machine else (), known(inventory.disks)
    there = (
        ", ".join(
            f"{disk.name} {disk.model or 'without a model'} {known(disk.size_bytes) / 1e9:.0f} GB"
            for disk in disks
        )
        or "none"
    )
    counts = {
        f"declared-disk:{n}": float(len(found))
        for n, found in enumerate(assign_disks(declared, disks), start=1)
    }
    check("disk_count", counts, notes={component: f"disks found: {there}" for component in counts})


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("link_up", "link_speed")
def test_network(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each declared network link: there, up, and at its speed.

    Measured: the link's present state in the kernel; no traffic is sent.
    """
    found = {link.name: link for link in known(inventory.links)}
    for declared in machine.network if machine else ():
        component, link = f"net:{declared.name}", found.get(declared.name)
        there = f"links found: {', '.join(found) or 'none'}"
        check("link_up", {component: float(bool(link and link.up))}, notes={component: there})
        speed = link.speed_mbps if link else None
        why = {
            component: "the link is down or missing"
            if not link or not link.up
            else "the driver does not tell the speed"
        }
        check("link_speed", {} if speed is None else {component: float(speed)}, skipped=why)


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("board_differs", "bios_version_differs", "kernel_differs", "driver_differs")
def test_system(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Board, BIOS version, kernel and NVIDIA driver, each as text.

    Measured: the texts of the firmware and the kernel.
    """
    if machine is None:
        return
    board, system = inventory.board, machine.system
    for name, text, found in (
        ("board", system.board, board.name),
        ("bios_version", system.bios_version, board.bios_version),
        ("kernel", system.kernel, board.kernel),
        ("driver", system.driver, board.nvidia_driver),
    ):
        if text is not None:
            differs = {} if found is None else {"system": float(not same_text(text, found))}
            why = {
                "system": (
                    f"the machine does not show its {name.replace('_', ' ')} (a VM may withhold it)"
                )
            }
            check(f"{name}_differs", differs, skipped=why, notes={"system": f"found {found}"})
