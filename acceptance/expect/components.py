"""Components of each class on this machine, and what it does not allow to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

from acceptance.core.dtype import DTYPES, native_dtypes
from acceptance.expect import gpu_limits
from acceptance.machine import topology
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import GpuCounters, Inventory, known
from acceptance.machine.machine_file import Machine

# Counters that not every GPU has, by the class of the components that have them.
COUNTERS: Mapping[str, Callable[[GpuCounters], object | None]] = {
    "gpu-ecc": lambda counters: counters.ecc_uncorrected,
    "gpu-remap": lambda counters: counters.remap_failed,
    "gpu-retired": lambda counters: _all(
        counters.retired_single, counters.retired_double, counters.retired_pending
    ),
    "gpu-replay": lambda counters: counters.pcie_replays,
    "gpu-ecc-total": lambda counters: counters.ecc_corrected_total,
    "gpu-remap-total": lambda counters: counters.remapped_corrected,
    "gpu-nvlink-replay": lambda counters: counters.nvlink_replays,
    "gpu-nvlink-recovery": lambda counters: counters.nvlink_recoveries,
    "gpu-nvlink-crc": lambda counters: counters.nvlink_crc_errors,
}
# All GPUs of the test as one component, for programs that use them together and name no single GPU.
ALL_GPUS = "gpus"


def _all(*parts: object | None) -> object | None:
    """A value other than None where no part is None, else None."""
    return None if None in parts else parts


def core_name(siblings: tuple[int, ...]) -> str:
    """The component name of a physical core, by its first logical CPU."""
    return f"core:{siblings[0]}"


def gpu_count(machine: Machine | None, inventory: Inventory) -> int:
    """How many GPUs are due.

    NVIDIA's display functions on the PCI bus, or the declared GPUs if they are more; never NVML's
    own list.
    """
    return max(len(gpus(inventory)), (machine.gpu_count() or 0) if machine else 0)


def resolve(
    machine: Machine | None, inventory: Inventory, sensors: frozenset[str], names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Every class of components with its members on this machine.

    `names` are the GPUs under test.
    """
    groups = [group.cores for group in inventory.cpu.core_groups]
    return {
        "machine": ("machine",),
        "system": ("system",),
        "cpu": ("cpu",),
        "memory": ("memory",),
        "core": tuple(core_name(core) for cores in groups for core in cores),
        "core-with-peers": tuple(
            core_name(core) for cores in groups if len(cores) > 1 for core in cores
        ),
        "cpu-thermometer": ("cpu",) if "cpu_temperature_c" in sensors else (),
        "cpu-throttle-counter": ("cpu",) if "cpu_throttle_count" in sensors else (),
        "cpuburn": ("cpu",) if machine and machine.cpu.cpuburn else (),
        "disk": tuple(disk.component for disk in known(inventory.disks)),
        # Every NVMe disk reports its wear (NVMe base specification, SMART / Health Information
        # log); other disks have no common form for it.
        "disk-nvme": tuple(
            disk.component for disk in known(inventory.disks) if disk.kind == "nvme"
        ),
        "dimm": tuple(f"dimm:{dimm.slot}" for dimm in machine.memory.dimm) if machine else (),
        "declared-disk": tuple(f"declared-disk:{index + 1}" for index in range(len(machine.disk)))
        if machine
        else (),
        "declared-link": tuple(f"net:{link.name}" for link in machine.network) if machine else (),
        **_gpus(machine, inventory, names),
    }


def pair_name(first: str, second: str) -> str:
    """The component name of the path from one GPU to another."""
    return f"{first}->{second}"


def _gpus(
    machine: Machine | None, inventory: Inventory, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The classes of GPUs. The NVML answers before the run decide which counters a card has."""
    due = gpus(inventory, names)
    models = [gpu.model for gpu in due]
    declared = (
        [gpu.nvlink_links for gpu in machine.gpu for _ in range(gpu.count)] if machine else []
    )
    wired = {f"gpu{index}" for index, links in enumerate(declared) if links is not None}
    found = {
        "gpu": tuple(names),
        "gpus": (ALL_GPUS,) if names else (),
        "gpus-paired": (ALL_GPUS,) if len(names) > 1 else (),
        "gpu-with-peers": tuple(
            gpu.name for gpu in due if gpu.model is not None and models.count(gpu.model) > 1
        ),
        "gpu-with-link-peers": _with_link_peers(machine, inventory, names),
        "gpu-pair": tuple(pair_name(a, b) for a, b in permutations(names, 2)),
        "gpu-nvlink": tuple(
            gpu.name for gpu in due if gpu.links or (gpu.device and gpu.name in wired)
        ),
        "gpu-nvlink-up": tuple(gpu.name for gpu in due if gpu.active_links),
        "gpu-memory-thermometer": tuple(
            gpu.name for gpu in due if gpu.traits is not None and gpu.traits.memory_thermometer
        ),
    }
    for name, offered in COUNTERS.items():
        found[name] = tuple(
            gpu.name
            for gpu in due
            if gpu.counters is not None and offered(gpu.counters) is not None
        )
    formats = {gpu.name: _formats(gpu) for gpu in due}
    for dtype in DTYPES:
        own = tuple(name for name in names if dtype in formats.get(name, DTYPES))
        found[f"gpu-{dtype}"] = own
        found[f"gpu-{dtype}-with-peers"] = tuple(
            name for name in own if name in found["gpu-with-peers"]
        )
    peers = {
        (a.name, b.name)
        for a, b, pair in topology.pairs(inventory, due)
        if pair.p2p_read == pair.p2p_write == "ok"
    }
    found["gpu-peers"] = tuple(
        pair_name(a, b) for a, b in permutations(names, 2) if (a, b) in peers
    )
    found["gpus-peered"] = (ALL_GPUS,) if found["gpu-peers"] else ()
    return found


def link_siblings(
    machine: Machine | None, inventory: Inventory, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The GPUs of these names, by model and by the link that card and slot can form.

    Equal copies are to be expected on equal links only.
    """
    found: dict[str, tuple[str, ...]] = {}
    for one in gpu_limits.gpu_facts(gpus(inventory, names), machine):
        generation, width = one.link_generation, one.link_width
        if one.model is not None and generation is not None and width is not None:
            key = f"{one.model} at generation {generation.value} x{width.value}"
            found[key] = (*found.get(key, ()), one.name)
    return found


def siblings(
    machine: Machine | None, inventory: Inventory, names: Sequence[str]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The groups of equal GPUs, by the class of components that are compared within them."""
    models: dict[str, tuple[str, ...]] = {}
    for gpu in gpus(inventory):
        if gpu.name in names and gpu.model is not None:
            models[gpu.model] = (*models.get(gpu.model, ()), gpu.name)
    by_model = tuple(models.values())
    return {
        "gpu-with-peers": by_model,
        **{f"gpu-{dtype}-with-peers": by_model for dtype in DTYPES},
        "gpu-with-link-peers": tuple(link_siblings(machine, inventory, names).values()),
    }


def _with_link_peers(
    machine: Machine | None, inventory: Inventory, names: Sequence[str]
) -> tuple[str, ...]:
    groups = link_siblings(machine, inventory, names).values()
    having = {name for group in groups if len(group) > 1 for name in group}
    return tuple(name for name in names if name in having)


def _formats(gpu: Gpu) -> tuple[str, ...]:
    """The number formats that a GPU supports itself.

    All formats where the driver does not report the compute capability: then nothing is left out.
    """
    capability = gpu.traits.compute_capability if gpu.traits is not None else None
    return DTYPES if capability is None else native_dtypes(capability)


def not_offered(components: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What is not tested because this machine does not show it, as sentences for the plan."""
    found = []
    if not components["cpu-thermometer"]:
        found.append(
            "processor temperature: no sensor driver shows one (a VM has none; else load "
            "coretemp or k10temp)"
        )
    if not components["cpu-throttle-counter"]:
        found.append(
            "processor throttling: the kernel shows no throttle counters (Intel only, and "
            "not in a VM)"
        )
    if not components["core"]:
        found.append("single cores: the kernel shows no processor topology")
    elif not components["core-with-peers"]:
        found.append("slow cores: a core is held against others of its kind, and there is only one")
    if not components["disk"]:
        found.append("disk health: no disk was found")
    return (*found, *_gpus_do_not_offer(components))


def _gpus_do_not_offer(components: Mapping[str, tuple[str, ...]]) -> list[str]:
    due = components["gpu"]
    reasons = (
        (
            "gpu-ecc",
            (
                "memory errors: no ECC counters (GeForce has none, or ECC is off: `nvidia-smi -q "
                "-d ECC`)"
            ),
        ),
        ("gpu-replay", "PCIe replays: the driver shows no counter"),
    )
    found = []
    for name, reason in reasons:
        if without := [gpu for gpu in due if gpu not in components[name]]:
            found.append(f"{', '.join(without)}: {reason}")
    linked = ("gpu-nvlink-replay", "gpu-nvlink-recovery", "gpu-nvlink-crc")
    uncounted = [
        gpu
        for gpu in components["gpu-nvlink-up"]
        if not all(gpu in components[name] for name in linked)
    ]
    if uncounted:
        found.append(
            f"{', '.join(uncounted)}: NVLink errors: the driver does not show every counter of them"
        )
    # Memory that went bad is retired in one of two ways: as rows since Ampere, as pages before.
    unread = [
        gpu
        for gpu in due
        if gpu not in components["gpu-remap"] and gpu not in components["gpu-retired"]
    ]
    if unread:
        found.append(
            f"{', '.join(unread)}: remapped rows and retired pages: the driver shows neither"
        )
    if len(due) == 1:
        found.append("slow GPUs: a GPU is held against others of its model, and there is only one")
    elif alone := [gpu for gpu in due if gpu not in components["gpu-with-peers"]]:
        found.append(
            f"{', '.join(alone)}: slow GPUs: a GPU is held against others of its model, and "
            "no other was seen"
        )
    unlike = [
        gpu for gpu in components["gpu-with-peers"] if gpu not in components["gpu-with-link-peers"]
    ]
    if unlike:
        text = "a copy is held against others of the model on such a link, and no other was seen"
        found.append(f"{', '.join(unlike)}: slow copies: {text}")
    return found
