"""The machine's parts against the declarations of its machine file.

A fact that is not declared is not due.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from acceptance.core import message
from acceptance.core.limit import GIB
from acceptance.core.message import (
    Gap,
    Listed,
    Message,
    Unmeasured,
    Value,
    after_fault,
    english,
    not_offered,
)
from acceptance.core.parts import CPU, MEMORY, SYSTEM, Component, Part
from acceptance.core.plain_text import same_text
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
    cpu, untold = (
        inventory.cpu,
        not_offered(Message(english("no_topology", "the kernel shows no processor topology"))),
    )
    for name, value in (
        ("cpu_sockets", cpu.sockets),
        ("cpu_cores", cpu.cores),
        ("cpu_threads", cpu.threads),
    ):
        check.single(name, CPU, value, untold)
    if machine is not None:
        model, governor = (
            Message(english("no_processor_model", "the kernel shows no processor model")),
            Message(
                english(
                    "no_governor",
                    "the machine offers no frequency governor (a VM leaves it to its host)",
                )
            ),
        )
        _compare(check, "cpu_model_differs", CPU, machine.cpu.model, cpu.model, model)
        _compare(check, "cpu_governor_differs", CPU, machine.cpu.governor, cpu.governor, governor)


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
    count = None if memory.dimms is None else len(memory.dimms)
    check.single("dimm_count", MEMORY, count, _unread(memory))
    found = channels(inventory)
    if found is not None:  # due only then
        check.single("memory_channels", MEMORY, len(found.filled), note=found.empty_cost())
        less = None if found.less is None else len(found.less)
        untold = not_offered(
            Message(
                english("module_size_untold", "the firmware does not give the size of every module")
            )
        )
        check.single("memory_channels_unequal", MEMORY, less, untold, found.unequal_cost())


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
    slots = Message(english("modules_in", "modules are in: {slots}"), {"slots": _names(found)})
    for wanted in declared:
        component: Component = Part("dimm", wanted.slot)
        dimm = found.get(wanted.slot)
        there: bool | None = dimm is not None
        why = not_offered(
            Message(english("not_in_firmware_tables", "the firmware's tables do not say"))
        )
        if inventory.memory.dimms is None:
            there, why = None, _unread(inventory.memory)
        elif dimm is None:
            why = after_fault(
                Message(english("no_module_in", "no module is in {slot}"), {"slot": wanted.slot})
            )
        check.single("dimm_present", component, there, why, slots)
        size = dimm.size_bytes / GIB if dimm and dimm.size_bytes is not None else None
        for name, value in (
            ("dimm_size", size),
            ("dimm_rated_speed", dimm.rated_mts if dimm else None),
            ("dimm_configured_speed", dimm.configured_mts if dimm else None),
        ):
            check.single(name, component, value, why)
        part = dimm.part_number if dimm else None
        _compare(check, "dimm_part_number_differs", component, wanted.part_number, part, why)


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
            english("disk_there", "{disk} {model} {size} GB[ with firmware {firmware}]"),
            message.known(
                disk=disk.name,
                model=disk.model or Message(english("without_model", "without a model")),
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
    note = Message(
        english("disks_found", "disks found: {disks}"),
        {"disks": Listed(there) if there else Message("none")},
    )
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
        there = Message(english("links_found", "links found: {links}"), {"links": _names(found)})
        up = bool(link and link.up)
        check.single("link_up", component, up, note=there)
        why = (
            not_offered(Message(english("speed_not_told", "the driver does not tell the speed")))
            if up
            else after_fault(Message(english("link_down", "the link is down or missing")))
        )
        check.single("link_speed", component, link.speed_mbps if link else None, why)


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
        _compare(
            check,
            measurement,
            SYSTEM,
            text,
            found,
            Message(
                english("not_shown", "the machine does not show its {what} (a VM may withhold it)"),
                {"what": name},
            ),
        )


def _compare(
    check: Check,
    measurement: str,
    component: Component,
    declared: str | None,
    found: str | None,
    why: Message | Gap,
) -> None:
    """Journal whether a text is another than the declared one, or why it was not found."""
    if declared is not None:
        differs = None if found is None else not same_text(declared, found)
        gap = why if isinstance(why, Gap) else not_offered(why)
        check.single(measurement, component, differs, gap, Message("found", {"text": str(found)}))


def _names(found: Iterable[str]) -> Value:
    """Names in a list, or that there are none."""
    return Listed(names) if (names := tuple(found)) else Message("none")
