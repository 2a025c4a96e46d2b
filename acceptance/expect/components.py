"""Components of each class on this machine, and what it does not allow to measure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import permutations

from msgspec.structs import replace

from acceptance.core import parts
from acceptance.core.dtype import DTYPES, native_dtypes
from acceptance.core.evidence import Scratch
from acceptance.core.grouping import grouped
from acceptance.core.limit import GIB
from acceptance.core.message import Listed, Message, english
from acceptance.core.parts import (
    CPU,
    GPUS,
    MACHINE,
    MEMORY,
    SYSTEM,
    Component,
    Core,
    Pair,
    Part,
    parse,
)
from acceptance.expect import gpu_limits, measurements
from acceptance.loads.train.step_contract import NEO_GIB
from acceptance.machine import gpu_health, network_card, scratch_place, topology
from acceptance.machine.declared_disks import new_disks
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import GpuCounters, Inventory, known
from acceptance.machine.machine_file import Machine

_AMPLE = 1 << 50  # bytes: more than any check on a filesystem asks for
LEAST_MULTICAST = 3  # NCCL uses it between no fewer (ncclNvlsInit in its transport/nvls.cc)
LEAST_EQUALS = 3  # of fewer equal cards nobody can say which one is the odd one
_COUNTED = "-counted-"  # in the class of components of which the kernel counts something

# Counters that not every GPU has, by the class of the components that have them.
COUNTERS: Mapping[str, Callable[[GpuCounters], object | None]] = {
    "gpu-ecc": lambda counters: counters.ecc_uncorrected,
    "gpu-remap": lambda counters: counters.remap_failed,
    "gpu-retired": lambda counters: _all(
        counters.retired_single, counters.retired_double, counters.retired_pending
    ),
    "gpu-replay": lambda counters: counters.pcie_replays,
    "gpu-ecc-life": lambda counters: counters.ecc_uncorrected_total,
    "gpu-ecc-total": lambda counters: counters.ecc_corrected_total,
    "gpu-remap-total": lambda counters: counters.remapped_corrected,
    "gpu-nvlink-replay": lambda counters: counters.nvlink_replays,
    "gpu-nvlink-recovery": lambda counters: counters.nvlink_recoveries,
    "gpu-nvlink-crc": lambda counters: counters.nvlink_crc_errors,
}


def _all(*parts: object | None) -> object | None:
    """A value other than None where no part is None, else None."""
    return None if None in parts else parts


@functools.cache
def counted() -> tuple[str, ...]:
    """The classes of components of which the kernel counts something, as the families have them."""
    every = {one.per for one in measurements.shipped().by_name.values()}
    return tuple(sorted(one for one in every if _COUNTED in one))


def counting(kind: str) -> str:
    """The class of the components that may have such counters: "memory" of those by EDAC."""
    return kind.partition(_COUNTED)[0]


def _counted(inventory: Inventory, names: Sequence[Component]) -> dict[str, tuple[Component, ...]]:
    """The components with counters of the kernel, of the GPUs those under test."""
    tested = {*names, *((GPUS,) if names else ())}
    return {
        kind: tuple(
            one
            for one in map(parse, inventory.counters.get(kind, ()))
            if one in tested or not GPUS.holds(one)
        )
        for kind in counted()
    }


def gpu_count(machine: Machine | None, inventory: Inventory) -> int:
    """How many GPUs are due.

    NVIDIA's display functions on the PCI bus, or the declared GPUs if they are more; never NVML's
    own list.
    """
    return max(len(gpus(inventory)), (machine.gpu_count() or 0) if machine else 0)


def resolve(
    machine: Machine | None,
    inventory: Inventory,
    sensors: frozenset[str],
    names: Sequence[Component],
    expected: Sequence[Component] | None = None,
    scratches: Sequence[Scratch] = (),
    thermometers: Collection[Component] = (),
) -> dict[str, tuple[Component, ...]]:
    """Every class of components with its members on this machine.

    `scratches` are the filesystems that the run tests, each by the disk under it. `thermometers`
    are the disks that show their temperature and their own threshold for it.
    `names` are the GPUs under test. `expected` are all on the bus that must answer, those under
    test where it is None: of a GPU that does not answer only its presence is due.
    """
    groups = [group.cores for group in inventory.cpu.core_groups]
    return {
        **_counted(inventory, names),
        "machine": (MACHINE,),
        "system": (SYSTEM,),
        "cpu": (CPU,),
        "memory": (MEMORY,),
        "system-mounts": (SYSTEM,) if inventory.writable else (),
        "core": tuple(Core(core[0]) for cores in groups for core in cores),
        "core-with-peers": tuple(
            Core(core[0]) for cores in groups if len(cores) > 1 for core in cores
        ),
        "socket": tuple(parse(group.name) for group in inventory.cpu.socket_cores),
        "socket-pair": tuple(
            Pair(parse(a.name), parse(b.name))
            for a, b in permutations(inventory.cpu.socket_cores, 2)
        ),
        "cpu-thermometer": (CPU,) if "cpu_temperature_c" in sensors else (),
        "cpu-throttle-counter": (CPU,) if "cpu_throttle_count" in sensors else (),
        "cpuburn": (CPU,) if machine and machine.cpu.cpuburn else (),
        "disk": tuple(disk.component for disk in known(inventory.disks)),
        # Every NVMe disk reports its wear (NVMe base specification, SMART / Health Information
        # log); other disks have no common form for it.
        "disk-nvme": tuple(
            disk.component for disk in known(inventory.disks) if disk.kind == "nvme"
        ),
        # A virtual disk has no report of its own, and no link.
        "disk-physical": tuple(
            disk.component for disk in known(inventory.disks) if disk.kind != "virtual"
        ),
        "disk-new": new_disks(machine, inventory),
        "disk-linked": _linked(inventory),
        "disk-thermometer": tuple(
            disk.component for disk in known(inventory.disks) if disk.component in thermometers
        ),
        "dimm": tuple(Part("dimm", dimm.slot) for dimm in machine.memory.dimm) if machine else (),
        "declared-disk": tuple(
            Part("declared-disk", str(index + 1)) for index in range(len(machine.disk))
        )
        if machine
        else (),
        "declared-link": tuple(Part("net", link.name) for link in machine.network)
        if machine
        else (),
        **_network(machine, inventory, names),
        "gpu-expected": tuple(names if expected is None else expected),
        **_scratches(inventory, scratches, gpus=bool(names)),
        **_gpus(machine, inventory, names),
    }


def _linked(inventory: Inventory) -> tuple[Component, ...]:
    """The disks whose link the kernel shows; a virtual disk has none."""
    return tuple(
        disk.component
        for disk in known(inventory.disks)
        if disk.kind != "virtual" and disk.transport in ("nvme", "sata")
    )


def _network(
    machine: Machine | None, inventory: Inventory, names: Sequence[Component]
) -> dict[str, tuple[Component, ...]]:
    """The classes of network ports and cards, by what the kernel showed of them before the run."""
    ports = network_card.ports(known(inventory.links))
    virtualised = bool(inventory.cpu.virtualised)
    equal = {one for group in network_siblings(machine, inventory) for one in group}
    counting = {
        f"network-port-{kind}": tuple(
            port.component for port in ports if not port.counters.keys().isdisjoint(counters)
        )
        for kind, counters in (
            (name.removeprefix("network_").replace("_", "-"), counters)
            for name, counters in network_card.COUNTERS.items()
        )
    }
    return {
        "network-port": tuple(port.component for port in ports),
        "network-port-rated": tuple(port.component for port in ports if network_card.rated(port)),
        "network-port-with-peers": tuple(p.component for p in ports if p.component in equal),
        "network-card-linked": tuple(
            card.component
            for card in network_card.cards(ports).values()
            if network_card.shows_link(card, virtualised=virtualised)
        ),
        "gpu-networked": tuple(
            gpu.name for gpu in gpus(inventory, names) if network_card.nearest(inventory, gpu)
        ),
        **counting,
    }


def network_siblings(
    machine: Machine | None, inventory: Inventory
) -> tuple[tuple[Component, ...], ...]:
    """The groups of network ports of which equal rates are to be expected."""
    declared = machine.network if machine else ()
    named = [link.name for link in declared if link.speed_mbps is not None]
    return network_card.equal_ports(known(inventory.links), named)


def any_profile(
    classes: Mapping[str, tuple[Component, ...]],
    inventory: Inventory,
    scratches: Sequence[Scratch],
) -> dict[str, tuple[Component, ...]]:
    """These classes with all that some profile measures on the tested filesystems.

    A limit or a waiver may be of what this profile does not write or read.
    """
    full = [replace(one, write_bytes=_AMPLE, kept_bytes=1, sealed_bytes=1) for one in scratches]
    return {**classes, **_scratches(inventory, full, gpus=bool(classes["gpu"]))}


def _scratches(
    inventory: Inventory, scratches: Sequence[Scratch], *, gpus: bool
) -> dict[str, tuple[Component, ...]]:
    """The classes of tested filesystems: by what the run does there."""
    written = tuple(one.component for one in scratches if one.write_bytes)
    sealed = tuple(one.component for one in scratches if one.sealed_bytes)
    readable = tuple(one.component for one in scratches if one.write_bytes or one.sealed_bytes)
    linked = _linked(inventory)
    groups = disk_siblings(inventory, scratches)
    equal = {one for group in groups["disk-scratch-with-peers"] for one in group}
    equally_read = {one for group in groups["disk-scratch-read-with-peers"] for one in group}
    return {
        "disk-scratch": written,
        "disk-scratch-with-peers": tuple(one for one in written if one in equal),
        "disk-scratch-read-with-peers": tuple(one for one in readable if one in equally_read),
        "disk-scratch-full": tuple(
            one.component
            for one in scratches
            if scratch_place.full_cache_bytes(one.write_bytes - one.kept_bytes)
        ),
        "disk-scratch-kept": sealed,
        "disk-scratch-keep": tuple(one.component for one in scratches if one.kept_bytes),
        "disk-scratch-read": readable,
        "disk-scratch-linked": tuple(one for one in readable if one in linked),
        "disk-scratch-host": () if gpus else written,
        "disk-scratch-gpu": written if gpus else (),
    }


def disk_siblings(
    inventory: Inventory, scratches: Sequence[Scratch]
) -> dict[str, tuple[tuple[Component, ...], ...]]:
    """The tested filesystems of which equal rates are to be expected, two and more each, by class.

    Each lies on one disk, of the same model and size, with the same layers between, and is of the
    same kind. A virtual disk is as fast as its host makes it.
    """
    disks = {disk.name: disk for disk in known(inventory.disks) if disk.kind != "virtual"}
    written: dict[object, list[Component]] = {}
    readable: dict[object, list[Component]] = {}
    for one in scratches:
        disk = disks.get(one.disks[0]) if len(one.disks) == 1 else None
        if disk is None or disk.model is None or disk.size_bytes is None:
            continue
        key = disk.model, disk.size_bytes, one.layers, one.kind
        if one.write_bytes:
            written.setdefault(key, []).append(one.component)
        if one.write_bytes or one.sealed_bytes:
            # A file that an earlier run kept may lie elsewhere on the disk, and is smaller.
            readable.setdefault((*key, bool(one.write_bytes)), []).append(one.component)
    return {
        "disk-scratch-with-peers": _of_several(written),
        "disk-scratch-read-with-peers": _of_several(readable),
    }


def _of_several(groups: Mapping[object, Sequence[Component]]) -> tuple[tuple[Component, ...], ...]:
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _gpus(
    machine: Machine | None, inventory: Inventory, names: Sequence[Component]
) -> dict[str, tuple[Component, ...]]:
    """The classes of GPUs. The NVML answers before the run decide which counters a card has."""
    due = gpus(inventory, names)
    models = [gpu.model for gpu in due]
    declared = (
        [gpu.nvlink_links for gpu in machine.gpu for _ in range(gpu.count)] if machine else []
    )
    wired = {parts.Gpu(index) for index, links in enumerate(declared) if links is not None}
    asked = machine is not None and machine.collectives.multicast
    multicast = asked and len(names) >= LEAST_MULTICAST
    found = {
        "gpu": tuple(names),
        "gpus": (GPUS,) if names else (),
        "gpus-paired": (GPUS,) if len(names) > 1 else (),
        "gpu-paired": tuple(names) if len(names) > 1 else (),
        "gpus-multicast": (GPUS,) if multicast else (),
        "gpu-multicast": tuple(names) if multicast else (),
        "gpu-pair-with-peers": tuple(
            pair for group in pair_siblings(machine, inventory, names) for pair in group
        ),
        "gpu-with-peers": tuple(
            gpu.name for gpu in due if gpu.model is not None and models.count(gpu.model) > 1
        ),
        "gpu-with-link-peers": _with_link_peers(machine, inventory, names),
        "gpu-fan-with-peers": _with_fan_peers(due),
        "gpu-pair": tuple(Pair(a, b) for a, b in permutations(names, 2)),
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
    for measurement, reading in gpu_health.READINGS.items():
        found[gpu_health.component_class(measurement)] = tuple(
            gpu.name for gpu in due if gpu.device is not None and reading(gpu.device) is not None
        )
    formats = {gpu.name: _formats(gpu) for gpu in due}
    for dtype in DTYPES:
        own = tuple(name for name in names if dtype in formats.get(name, DTYPES))
        found[f"gpu-{dtype}"] = own
        found[f"gpu-{dtype}-with-peers"] = tuple(
            name for name in own if name in found["gpu-with-peers"]
        )
    # Due where the driver does not tell the memory: then nothing is left out.
    neo = tuple(gpu.name for gpu in due if (gpu.memory_bytes or _AMPLE) >= NEO_GIB * GIB)
    found["gpu-neo"] = neo
    found["gpu-neo-with-peers"] = tuple(n for n in neo if n in found["gpu-with-peers"])
    peers = {
        (a.name, b.name)
        for a, b, pair in topology.pairs(inventory, due)
        if pair.p2p_read == pair.p2p_write == "ok"
    }
    found["gpu-peers"] = tuple(Pair(a, b) for a, b in permutations(names, 2) if (a, b) in peers)
    found["gpus-peered"] = (GPUS,) if found["gpu-peers"] else ()
    return found


def _with_fan_peers(due: Sequence[Gpu]) -> tuple[Component, ...]:
    """The GPUs that tell their fans' speed, where at least three of that model do."""
    telling = [gpu for gpu in due if gpu.model is not None and gpu.traits and gpu.traits.fan]
    models = [gpu.model for gpu in telling]
    return tuple(gpu.name for gpu in telling if models.count(gpu.model) >= LEAST_EQUALS)


def link_siblings(
    machine: Machine | None, inventory: Inventory, names: Sequence[Component]
) -> dict[str, tuple[Component, ...]]:
    """The GPUs of these names, by model and by the link that card and slot can form.

    Equal copies are to be expected on equal links only.
    """
    return grouped(
        (f"{model} at generation {generation} x{width}", name)
        for name, (model, generation, width) in _links(machine, gpus(inventory, names)).items()
    )


def _links(machine: Machine | None, due: tuple[Gpu, ...]) -> dict[Component, tuple[str, int, int]]:
    """Model, generation and width of the link that card and slot can form, where all are known."""
    return {
        one.name: (one.model, one.link_generation.value, one.link_width.value)
        for one in gpu_limits.gpu_facts(due, machine)
        if one.model is not None and one.link_generation is not None and one.link_width is not None
    }


def pair_siblings(
    machine: Machine | None, inventory: Inventory, names: Sequence[Component]
) -> tuple[tuple[Component, ...], ...]:
    """The paths between these GPUs of which equal rates are to be expected, two and more each.

    The two GPUs are of the same models with the same PCI Express links, and what joins them is of
    one kind: as many NVLinks, and the same way between them, with or without peer access.
    """
    due = gpus(inventory, names)
    ends = _links(machine, due)
    found = grouped(
        (
            (
                *sorted((ends[a.name], ends[b.name])),
                *(topology.nvlinks(a, b), pair.path, pair.p2p_read, pair.p2p_write),
            ),
            Pair(a.name, b.name),
        )
        for a, b, pair in topology.pairs(inventory, due)
        if a.name in ends and b.name in ends
    )
    return tuple(group for group in found.values() if len(group) > 1)


def of_one_model(gpus: Iterable[Gpu]) -> dict[str, tuple[Component, ...]]:
    """The names of these GPUs by model; a GPU of an unknown model is absent."""
    return grouped((gpu.model, gpu.name) for gpu in gpus if gpu.model is not None)


def siblings(
    machine: Machine | None,
    inventory: Inventory,
    names: Sequence[Component],
    scratches: Sequence[Scratch] = (),
) -> dict[str, tuple[tuple[Component, ...], ...]]:
    """The groups of equal parts, by the class of components that are compared within them."""
    by_model = tuple(of_one_model(gpus(inventory, names)).values())
    return {
        "gpu-with-peers": by_model,
        **{f"gpu-{dtype}-with-peers": by_model for dtype in DTYPES},
        "gpu-neo-with-peers": by_model,
        "gpu-with-link-peers": tuple(link_siblings(machine, inventory, names).values()),
        "gpu-pair-with-peers": pair_siblings(machine, inventory, names),
        "network-port-with-peers": network_siblings(machine, inventory),
        **disk_siblings(inventory, scratches),
    }


def _with_link_peers(
    machine: Machine | None, inventory: Inventory, names: Sequence[Component]
) -> tuple[Component, ...]:
    groups = link_siblings(machine, inventory, names).values()
    having = {name for group in groups if len(group) > 1 for name in group}
    return tuple(name for name in names if name in having)


def _formats(gpu: Gpu) -> tuple[str, ...]:
    """The number formats that a GPU supports itself.

    All formats where the driver does not report the compute capability: then nothing is left out.
    """
    capability = gpu.traits.compute_capability if gpu.traits is not None else None
    return DTYPES if capability is None else native_dtypes(capability)


def not_offered(components: Mapping[str, tuple[Component, ...]]) -> tuple[Message, ...]:
    """What is not tested because this machine does not show it, for the plan."""
    found = []
    if not components["cpu-thermometer"]:
        found.append(
            Message(
                english(
                    "no_processor_sensor",
                    "processor temperature: no sensor driver shows one (a VM has none; else load "
                    "coretemp or k10temp)",
                )
            )
        )
    if not components["cpu-throttle-counter"]:
        found.append(
            Message(
                english(
                    "no_throttle_counter",
                    "processor throttling: the kernel shows no throttle counters (Intel only, and "
                    "not in a VM)",
                )
            )
        )
    if not components["core"]:
        found.append(
            Message(
                english("no_single_cores", "single cores: the kernel shows no processor topology")
            )
        )
    elif not components["core-with-peers"]:
        found.append(
            Message(
                english(
                    "no_other_core",
                    "slow cores: a core is compared with others of its kind, and there is only one",
                )
            )
        )
    if not components["disk"]:
        found.append(Message(english("no_disk", "disk health: no disk was found")))
    if not components["network-port"]:
        found.append(
            Message(
                english("no_network_card", "network cards: none of the machine's own was found")
            )
        )
    for kind in counted():
        of, source = components[counting(kind)], kind.partition(_COUNTED)[2].upper()
        if of and not components[kind]:
            found.append(
                Message(
                    english(
                        "kernel_counts_none",
                        "errors that the kernel counts by {source}: it shows no such counter here",
                    ),
                    {"source": source},
                )
            )
    return (*found, *gpus_do_not_offer(components))


def gpus_do_not_offer(components: Mapping[str, tuple[Component, ...]]) -> list[Message]:
    """What is not tested because the GPUs do not show it, or there are too few of them."""
    due = components["gpu"]

    def without(*names: str) -> dict[str, Listed]:
        lacking = [gpu for gpu in due if not any(gpu in components[name] for name in names)]
        return {"gpus": Listed(tuple(map(str, lacking)))} if lacking else {}

    found = []
    if gpus := without("gpu-ecc"):
        found.append(
            Message(
                english(
                    "gpus_without_ecc",
                    "{gpus}: memory errors: no ECC counters (GeForce has none, or ECC is off: "
                    "`nvidia-smi -q -d ECC`)",
                ),
                gpus,
            )
        )
    if gpus := without("gpu-replay"):
        found.append(
            Message(
                english(
                    "gpus_without_replays", "{gpus}: PCIe replays: the driver shows no counter"
                ),
                gpus,
            )
        )
    linked = ("gpu-nvlink-replay", "gpu-nvlink-recovery", "gpu-nvlink-crc")
    uncounted = [
        gpu
        for gpu in components["gpu-nvlink-up"]
        if not all(gpu in components[name] for name in linked)
    ]
    if uncounted:
        found.append(
            Message(
                english(
                    "gpus_without_link_errors",
                    "{gpus}: NVLink errors: the driver does not show every counter of them",
                ),
                {"gpus": Listed(tuple(map(str, uncounted)))},
            )
        )
    # Memory that went bad is retired in one of two ways: as rows since Ampere, as pages before.
    if gpus := without("gpu-remap", "gpu-retired"):
        found.append(
            Message(
                english(
                    "gpus_without_retired",
                    "{gpus}: remapped rows and retired pages: the driver shows neither",
                ),
                gpus,
            )
        )
    if len(due) == 1:
        found.append(
            Message(
                english(
                    "no_other_gpu",
                    "slow GPUs: a GPU is compared with others of its model, and there is only "
                    "one; collective operations, paths between GPUs and parallel training: they "
                    "need two",
                )
            )
        )
    elif gpus := without("gpu-with-peers"):
        found.append(
            Message(
                english(
                    "gpus_without_peers",
                    "{gpus}: slow GPUs: a GPU is compared with others of its model, and there is "
                    "no other",
                ),
                gpus,
            )
        )
    unlike = [
        gpu for gpu in components["gpu-with-peers"] if gpu not in components["gpu-with-link-peers"]
    ]
    if unlike:
        found.append(
            Message(
                english(
                    "gpus_without_link_peers",
                    "{gpus}: slow copies: a copy is compared with others of the model on such a "
                    "link, and there is no other",
                ),
                {"gpus": Listed(tuple(map(str, unlike)))},
            )
        )
    if components["gpus-paired"]:
        found.append(
            Message(
                english(
                    "no_collectives_over_network",
                    "collective operations with other machines over a network: they run between "
                    "the GPUs of this machine only",
                )
            )
        )
        if components["gpu-nvlink-up"] and not components["gpus-multicast"]:
            found.append(
                Message(
                    english(
                        "no_collectives_by_multicast",
                        "collective operations with NVLink multicast (NVLS): they run with it "
                        "off, unless the machine file asks for it (collectives.multicast = true) "
                        "and there are three GPUs",
                    )
                )
            )
    return found
