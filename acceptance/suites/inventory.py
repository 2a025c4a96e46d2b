"""The machine's parts against the declarations of its machine file.

A fact that is not declared is not due.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from acceptance.core import message
from acceptance.core.limit import GIB
from acceptance.core.message import Listed, Message, Value
from acceptance.core.parts import CPU, MEMORY, SYSTEM, Component, Part
from acceptance.core.plain_text import same_text
from acceptance.core.unmeasured import Gap, Unmeasured, after_fault, not_offered
from acceptance.machine.channels import channels
from acceptance.machine.declared_disks import assign_disks
from acceptance.machine.inventory import Inventory, Memory, known
from acceptance.machine.machine_file import Machine
from acceptance.session.check import Check


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
    unread = {CPU: not_offered(Message("no_topology"))}
    for name, value in (
        ("cpu_sockets", cpu.sockets),
        ("cpu_cores", cpu.cores),
        ("cpu_threads", cpu.threads),
    ):
        check(name, {} if value is None else {CPU: float(value)}, skipped=unread)
    if machine is not None and machine.cpu.model is not None:
        differs = (
            {CPU: float(not same_text(machine.cpu.model, cpu.model))}
            if cpu.model is not None
            else {}
        )
        unread = {CPU: not_offered(Message("no_processor_model"))}
        check("cpu_model_differs", differs, skipped=unread, notes={CPU: _found(cpu.model)})
    if machine is not None and machine.cpu.governor is not None:
        differs = (
            {CPU: float(not same_text(machine.cpu.governor, cpu.governor))}
            if cpu.governor is not None
            else {}
        )
        unread = {CPU: not_offered(Message("no_governor"))}
        check("cpu_governor_differs", differs, skipped=unread, notes={CPU: _found(cpu.governor)})


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("memory_total", "dimm_count", "memory_channels", "memory_channels_unequal")
def test_memory(inventory: Inventory, check: Check) -> None:
    """RAM in all, how many modules are plugged in, and on how many channels.

    Measured: the RAM that the kernel manages, and the modules in the firmware's tables (root only).
    The channels are those in the slots' names there.
    """
    memory = inventory.memory
    check("memory_total", {MEMORY: known(memory.total_bytes) / GIB})
    if memory.dimms is None:
        check("dimm_count", {}, skipped={MEMORY: _unread(memory)})
    else:
        check("dimm_count", {MEMORY: float(len(memory.dimms))})
    found = channels(inventory)
    if found is not None:  # due only then
        filled, less = {MEMORY: float(len(found.filled))}, found.less
        check("memory_channels", filled, notes={MEMORY: found.empty_cost()})
        check(
            "memory_channels_unequal",
            {} if less is None else {MEMORY: float(len(less))},
            skipped={MEMORY: not_offered(Message("module_size_untold"))},
            notes={MEMORY: found.unequal_cost()},
        )


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
    slots = Message("modules_in", {"slots": _names(found)})
    for wanted in declared:
        component: Component = Part("dimm", wanted.slot)
        dimm = found.get(wanted.slot)
        why = {component: not_offered(Message("not_in_firmware_tables"))}
        if dimm is None:
            why = {component: after_fault(Message("no_module_in", {"slot": wanted.slot}))}
        if inventory.memory.dimms is None:
            why = {component: _unread(inventory.memory)}
            check("dimm_present", {}, skipped=why)
        else:
            check(
                "dimm_present",
                {component: float(dimm is not None)},
                notes={component: slots},
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
            check("dimm_part_number_differs", differs, skipped=why, notes={component: _found(part)})


def _unread(memory: Memory) -> Gap:
    """Why the modules could not be read; an inventory of an older rigproof does not say which."""
    return Gap(memory.dimms_unread_why or Unmeasured.NO_ANSWER, memory.dimms_unread or "")


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("disk_count")
def test_disks(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each declared disk model, as often as declared, with its serial and at least its size.

    Measured: the disks that the kernel lists, each counted for one declaration, also by firmware
    where that is declared. Undeclared disks are no fault.
    """
    declared, disks = machine.disk if machine else (), known(inventory.disks)
    there = tuple(
        Message(
            "disk_there",
            message.known(
                disk=disk.name,
                model=disk.model or Message("without_model"),
                size=f"{known(disk.size_bytes) / 1e9:.0f}",
                firmware=disk.firmware,
            ),
        )
        for disk in disks
    )
    counts: dict[Component, float] = {
        Part("declared-disk", str(n)): float(len(found))
        for n, found in enumerate(assign_disks(declared, disks), start=1)
    }
    note = Message("disks_found", {"disks": Listed(there) if there else Message("none")})
    check("disk_count", counts, notes=dict.fromkeys(counts, note))


@pytest.mark.session("host-before")
@pytest.mark.costs(0.1)
@pytest.mark.measures("link_up", "link_speed")
def test_network(inventory: Inventory, machine: Machine | None, check: Check) -> None:
    """Each declared network link: there, up, and at its speed.

    Measured: the link's present state in the kernel; no traffic is sent.
    """
    found = {link.name: link for link in known(inventory.links)}
    for declared in machine.network if machine else ():
        component: Component = Part("net", declared.name)
        link = found.get(declared.name)
        there = Message("links_found", {"links": _names(found)})
        check("link_up", {component: float(bool(link and link.up))}, notes={component: there})
        speed = link.speed_mbps if link else None
        untold = not_offered(Message("speed_not_told"))
        why = {component: untold if link and link.up else after_fault(Message("link_down"))}
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
    for measurement, name, text, found in (
        ("board_differs", "board", system.board, board.name),
        ("bios_version_differs", "bios version", system.bios_version, board.bios_version),
        ("kernel_differs", "kernel", system.kernel, board.kernel),
        ("driver_differs", "driver", system.driver, board.nvidia_driver),
    ):
        if text is not None:
            differs = {} if found is None else {SYSTEM: float(not same_text(text, found))}
            why = {SYSTEM: not_offered(Message("not_shown", {"what": name}))}
            check(measurement, differs, skipped=why, notes={SYSTEM: _found(found)})


def _found(text: str | None) -> Message:
    return Message("found", {"text": str(text)})


def _names(found: Iterable[str]) -> Value:
    """Names in a list, or that there are none."""
    return Listed(names) if (names := tuple(found)) else Message("none")
