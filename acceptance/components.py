"""The components that measurements belong to, by class, and what this machine does not offer to measure."""

from __future__ import annotations

from collections.abc import Mapping

from acceptance.judge.machine import Machine
from acceptance.observe.inventory import Inventory, gpus


def core_name(siblings: tuple[int, ...]) -> str:
    """A physical core by its first logical CPU."""
    return f"core:{siblings[0]}"


def resolve(machine: Machine | None, inventory: Inventory, sensors: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Every class of components with its members on this machine.

    GPUs are the NVIDIA display functions on the PCI bus or as many as are declared, whichever is more: never NVML's own list.
    """
    groups = [group.cores for group in inventory.cpu.core_groups]
    seen, declared = len(gpus(inventory)), (machine.gpu_count() or 0) if machine else 0
    return {
        "machine": ("machine",),
        "system": ("system",),
        "cpu": ("cpu",),
        "memory": ("memory",),
        "core": tuple(core_name(core) for cores in groups for core in cores),
        "core-with-peers": tuple(core_name(core) for cores in groups if len(cores) > 1 for core in cores),
        "cpu-thermometer": ("cpu",) if "cpu_temperature_c" in sensors else (),
        "cpu-throttle-counter": ("cpu",) if "cpu_throttle_count" in sensors else (),
        "cpuburn": ("cpu",) if machine and machine.cpu.cpuburn else (),
        "disk": tuple(disk.component for disk in inventory.disks),
        "gpu": tuple(f"gpu{index}" for index in range(max(seen, declared))),
        "dimm": tuple(f"dimm:{dimm.slot}" for dimm in machine.memory.dimm) if machine else (),
        "declared-disk": tuple(f"declared-disk:{index + 1}" for index in range(len(machine.disk))) if machine else (),
        "declared-link": tuple(f"net:{link.name}" for link in machine.network) if machine else (),
    }


def not_offered(components: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is not tested because this machine does not show it, as sentences for the plan."""
    found = []
    if not components["cpu-thermometer"]:
        found.append("processor temperature: no sensor driver shows one (a VM has none; else load coretemp or k10temp)")
    if not components["cpu-throttle-counter"]:
        found.append("processor throttling: the kernel shows no throttle counters (Intel only, and not in a VM)")
    if not components["core"]:
        found.append("single cores: the kernel shows no processor topology")
    elif not components["core-with-peers"]:
        found.append("slow cores: a core is held against others of its kind, and there is only one")
    if not components["disk"]:
        found.append("disk health: no disk was found")
    return tuple(found)
