"""The machine that a machine file declares, as an inventory: to plan for it before it is here.

GPUs get what their model sheets say, processors, RAM, links and disks what the file says. What it
does not say is absent, and listed. Nothing of the machine on which this runs is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from acceptance.core import parts
from acceptance.core.evidence import Scratch
from acceptance.core.limit import GIB
from acceptance.core.message import Listed, Message, english
from acceptance.core.parts import MEMORY, Component
from acceptance.expect import components, disk_sheet, gpu_names, sheet
from acceptance.expect.sheet import Sheet
from acceptance.expect.site_sheets import Sheets
from acceptance.machine import network_card, pcie, scratch_place
from acceptance.machine.inventory import (
    Board,
    CoreGroup,
    Cpu,
    Dimm,
    Disk,
    GpuCounters,
    GpuHealth,
    GpuTraits,
    Inventory,
    Memory,
    NetworkLink,
    NvLink,
    NvmlAnswer,
    NvmlDevice,
    NvmlPair,
    PciFunction,
    PciPlace,
)
from acceptance.machine.machine_file import DeclaredGpu, DeclaredLink, Machine

# What a machine shows of itself and no file declares: a sound one is taken to show it.
SENSORS = frozenset({"cpu_temperature_c", "cpu_throttle_count"})
# A PCI domain that no machine has: a card whose address is not declared is somewhere.
_NOWHERE = "ffff"
_UNKNOWN_ID = "10de:????"  # of a GPU whose model is not declared
_SHOWN = 1  # lanes of a network card: the kernel shows how many, and no file declares it
_FIRST_REMAPPING = 8  # the compute capability from which rows are remapped (Ampere), not pages


@dataclass(frozen=True, slots=True)
class Observation:
    """What a machine shows before anything loads it, or would show by its file alone.

    `undeclared` says what the file leaves out, which is not planned; `hidden` are the classes of
    components that have no member for that reason. `disk_links` is the most that the link of a
    tested disk can carry, by the disk's name. `scratches` are the folders that the storage tests
    write in, and `unscratched` says why there is none. `cpu_limit_w` is the power limit of the
    processors.
    """

    inventory: Inventory
    undeclared: tuple[Message, ...] = ()
    hidden: frozenset[str] = frozenset()
    sensors: frozenset[str] = frozenset()
    thermometers: frozenset[Component] = frozenset()
    disk_links: Mapping[str, tuple[float, Message]] = field(default_factory=dict)
    scratches: tuple[Scratch, ...] = ()
    unscratched: tuple[Message, ...] = ()
    cpu_limit_w: float | None = None


def declared_machine(machine: Machine, sheets: Sheets, profile: str) -> Observation:
    """The machine that a file declares, by these sheets, as a run of this profile would see it."""
    cards = [gpu for gpu in machine.gpu for _ in range(gpu.count)]
    cards += [DeclaredGpu()] * ((machine.gpu_count() or 0) - len(cards))
    models = [_sheet(one, sheets.models) for one in cards]
    functions = [
        _function(index, *one) for index, one in enumerate(zip(cards, models, strict=True))
    ]
    addresses = [function.address for function in functions]
    wired = _wired(machine, cards, models)
    devices = [
        _device(index, cards[index], models[index], addresses, wired) for index in range(len(cards))
    ]
    disks = tuple(_disks(machine, sheets))
    links = tuple(_link(number, link) for number, link in enumerate(machine.network))
    has_cpu = bool(machine.cpu.cores or machine.cpu.threads)
    has_memory = machine.memory.total_gib is not None
    scratches = _scratches(machine, disks, profile)
    inventory = Inventory(
        cpu=_cpu(machine),
        memory=_memory(machine),
        disks=disks,
        links=links,
        pci=tuple(functions),
        board=_board(machine),
        nvml=NvmlAnswer(
            machine.system.driver,
            None,
            tuple(devices),
            None,
            None,
            tuple(_pairs(machine, models, wired)),
        ),
        places={one: PciPlace(one, one, (), None, None) for one in _places(addresses, links)},
        writable=("/dev/root",),
        counters=_of_kernel(len(cards)),
    )
    return Observation(
        inventory,
        tuple(_undeclared(machine, cards, models, disks, scratches, wired)),
        frozenset(("cpu",) * (not has_cpu) + ("memory",) * (not has_memory)),
        SENSORS if has_cpu else frozenset(),
        frozenset(disk.component for disk in disks if disk.kind == "nvme"),
        dict(_disk_links(disks, sheets)),
        scratches,
    )


def _sheet(declared: DeclaredGpu, sheets: Sequence[Sheet]) -> Sheet | None:
    """The sheet of a declared GPU, whose model may be named as people do; None where none is."""
    known = sheet.find(sheets, pci_id=declared.pci_id, nvml_name=declared.model)
    if known is not None or declared.model is None:
        return known
    found = gpu_names.meant(declared.model, sheets)
    fits = declared.pci_id is None or any(declared.pci_id in one.pci_ids for one in found)
    return found[0] if len(found) == 1 and fits else None


def _function(index: int, declared: DeclaredGpu, model: Sheet | None) -> PciFunction:
    """The PCI function of a GPU: the card's link by its sheet, the slot's as declared."""
    speeds = {number: pcie.transfer_rate(number) for number in range(1, 8)}
    card = speeds.get(model.pcie_gen or 0) if model else None
    return PciFunction(
        address=declared.address or f"{_NOWHERE}:{index:02x}:00.0",
        device_id=declared.pci_id or (model.pci_ids[0] if model else _UNKNOWN_ID),
        class_code=None,
        is_display=True,
        is_virtual_function=False,
        driver="nvidia",
        answers=True,
        revision=None,
        link_speed_gts=None,
        link_width=None,
        max_link_speed_gts=card,
        max_link_width=model.pcie_width if model else None,
        slot_max_link_speed_gts=speeds.get(declared.link_gen or 0),
        slot_max_link_width=declared.link_width,
        numa_node=None,
    )


@dataclass(frozen=True, slots=True)
class _Links:
    """The active NVLinks of a GPU: how many lead to each other GPU, and how many to switches."""

    to_gpus: Mapping[int, int] = field(default_factory=dict)
    to_switches: int = 0
    elsewhere: int = 0  # declared as active, and no file says where they lead

    @property
    def active(self) -> int:
        return sum(self.to_gpus.values()) + self.to_switches + self.elsewhere


def _wired(
    machine: Machine, cards: Sequence[DeclaredGpu], models: Sequence[Sheet | None]
) -> list[_Links]:
    """The NVLinks of every GPU: as declared, else as the board of its model has them."""
    paths: dict[int, dict[int, int]] = {}
    for pair in machine.gpu_pair:
        if pair.path is not None and pair.path.startswith("NV"):
            for a, b in permutations(pair.between):
                paths.setdefault(a, {})[b] = int(pair.path.removeprefix("NV"))
    found = []
    for index, (card, model) in enumerate(zip(cards, models, strict=True)):
        own = paths.get(index, {})
        nvlink = model.nvlink if model is not None else None
        on_board = nvlink is not None and 0 not in nvlink.active
        switched = on_board and model is not None and model.p2p == "yes" and len(cards) > 1
        others = [number for number in range(len(cards)) if number != index]
        number = card.nvlink_links
        if number is None and switched and nvlink is not None:
            number = nvlink.full()
        if switched:
            found.append(_Links(to_switches=number or 0))
        elif own:
            found.append(_Links(own, elsewhere=max(0, (number or 0) - sum(own.values()))))
        elif number and len(others) == 1:
            found.append(_Links({others[0]: number}))
        else:
            found.append(_Links(elsewhere=number or 0))
    return found


def _device(
    index: int,
    declared: DeclaredGpu,
    model: Sheet | None,
    addresses: Sequence[str],
    wired: Sequence[_Links],
) -> NvmlDevice:
    """A GPU as NVML would show a sound one of its model."""
    own = wired[index]
    speed = model.nvlink.link_gbs if model is not None and model.nvlink is not None else None
    ends: list[tuple[str | None, str | None]] = [(None, "switch")] * own.to_switches
    for other, count in own.to_gpus.items():
        ends += [(addresses[other], "gpu")] * count
    ends += [(None, None)] * own.elsewhere
    links = [
        NvLink(number, True, None, speed, address, kind, 0, 0, 0)
        for number, (address, kind) in enumerate(ends)
    ]
    listed = model.nvlink.links if model is not None and model.nvlink is not None else 0
    links += [
        NvLink(number, False, None, None, None, None, None, None, None)
        for number in range(len(links), listed)
    ]
    return NvmlDevice(
        index=index,
        uuid=None,
        name=_name(declared, model),
        pci_address=addresses[index],
        serial=None,
        vbios=None,
        memory_bytes=int(model.memory.gib * GIB) if model else None,
        error=None,
        error_code=None,
        traits=_traits(declared, model) if model else None,
        counters=_counters(model, active=own.active > 0) if model else None,
        links=tuple(links),
        health=_health(model) if model else None,
    )


def _name(declared: DeclaredGpu, model: Sheet | None) -> str | None:
    """The name that NVML gives the card."""
    return (
        declared.model
        if model is None or declared.model in model.nvml_names
        else model.nvml_names[0]
    )


def _traits(declared: DeclaredGpu, model: Sheet) -> GpuTraits:
    thermal, memory = model.thermal, model.memory
    return GpuTraits(
        compute_capability=model.compute_capability,
        cuda_cores=model.cuda_cores,
        max_sm_clock_mhz=model.nvml_max_sm_mhz or model.boost_mhz,
        # Two transfers of a pin in a cycle, as NVML counts them.
        max_memory_clock_mhz=memory.bandwidth_gbs / memory.bus_bits * 8 * 1000 / 2,
        memory_bus_bits=memory.bus_bits,
        max_link_gen=model.pcie_gen,
        max_link_gen_here=pcie.lower_maximum(model.pcie_gen, declared.link_gen),
        max_link_width_here=pcie.lower_maximum(model.pcie_width, declared.link_width),
        power_limit_w=model.tdp_w,
        power_limit_default_w=model.tdp_w,
        max_temperature_c=thermal.max_operating_c if thermal else None,
        slowdown_temperature_c=thermal.slowdown_c if thermal else None,
        shutdown_temperature_c=thermal.shutdown_c if thermal else None,
        memory_max_temperature_c=None,
        mig_enabled=None,
        compute_mode=None,
        display_active=None,
        persistence=None,
        ecc_enabled=model.ecc,
        numa_node=None,
        cpu_affinity=None,
        fabric_state=None,
        fabric_status=None,
        virtualised=None,
        compute_processes=None,
        graphics_processes=None,
        memory_thermometer=memory.type.startswith("HBM"),
    )


def _health(model: Sheet) -> GpuHealth:
    """The health of a sound card: what a card of its kind with ECC may offer."""
    if not model.ecc:
        return GpuHealth()
    return GpuHealth(
        sram_threshold_exceeded=False,
        channel_repair_pending=False,
        tpc_repair_pending=False,
        memory_unrepairable=False,
        banks_without_spare=0 if _remaps(model) else None,
        inforom_corrupt=False,
        recovery_action=0,
    )


def _remaps(model: Sheet) -> bool:
    return model.ecc and int(model.compute_capability.partition(".")[0]) >= _FIRST_REMAPPING


def _counters(model: Sheet, *, active: bool) -> GpuCounters:
    """The counters of a sound card: all of them 0, where a card of its kind has them."""
    ecc = 0 if model.ecc else None
    remaps = _remaps(model)
    retires = model.ecc and not remaps
    linked = 0 if active else None
    return GpuCounters(
        ecc_corrected=ecc,
        ecc_uncorrected=ecc,
        ecc_corrected_total=ecc,
        ecc_uncorrected_total=ecc,
        remapped_corrected=0 if remaps else None,
        remapped_uncorrected=0 if remaps else None,
        remap_pending=False if remaps else None,
        remap_failed=False if remaps else None,
        retired_single=0 if retires else None,
        retired_double=0 if retires else None,
        retired_pending=False if retires else None,
        pcie_replays=0,
        nvlink_replays=linked,
        nvlink_recoveries=linked,
        nvlink_crc_errors=linked,
    )


def _pairs(
    machine: Machine, models: Sequence[Sheet | None], wired: Sequence[_Links]
) -> Iterator[NvmlPair]:
    """The paths between the GPUs: as declared, else what the model of both allows."""
    declared = {frozenset(one.between): one for one in machine.gpu_pair}
    for a, b in permutations(range(len(models)), 2):
        pair = declared.get(frozenset((a, b)))
        path = pair.path if pair is not None else None
        joined = b in wired[a].to_gpus or min(wired[a].to_switches, wired[b].to_switches) > 0
        peers = (
            _peers(models[a], models[b], joined=joined)
            if pair is None or pair.p2p is None
            else pair.p2p
        )
        said = None if peers is None else "ok" if peers else "not-supported"
        on_bus = None if path is not None and path.startswith("NV") else path
        yield NvmlPair(a, b, on_bus, said, said, "ok" if joined else "not-supported")


def _peers(one: Sheet | None, other: Sheet | None, *, joined: bool) -> bool | None:
    """Whether two cards read each other's memory by their sheet; None where none says so."""
    if one is None or one is not other:
        return None
    if one.p2p == "nvlink":  # without any link, as board and processors allow
        return True if joined else None
    return joined if one.p2p == "bridge" else one.p2p == "yes"


def _cpu(machine: Machine) -> Cpu:
    """The processors, with their cores numbered as Linux does: second threads after all first."""
    declared = machine.cpu
    cores = declared.cores
    each = max(1, (declared.threads or 0) // cores) if cores else 1
    numbered = tuple(
        tuple(core + thread * (cores or 0) for thread in range(each)) for core in range(cores or 0)
    )
    sockets = declared.sockets or 0
    size = len(numbered) // sockets if sockets and not len(numbered) % sockets else 0
    return Cpu(
        model=declared.model,
        vendor=None,
        sockets=declared.sockets,
        cores=cores,
        threads=declared.threads or cores,
        core_groups=(CoreGroup("all", numbered),) if numbered else (),
        caches=(),
        governor=declared.governor,
        max_mhz=None,
        virtualised=None,
        socket_cores=tuple(
            CoreGroup(str(parts.Socket(number)), numbered[number * size : (number + 1) * size])
            for number in range(sockets if size else 0)
        ),
    )


def _memory(machine: Machine) -> Memory:
    """The RAM, all of it free; its modules where their slots are declared."""
    declared = machine.memory
    total = declared.total_gib * GIB if declared.total_gib is not None else None
    modules = tuple(
        Dimm(
            slot=one.slot,
            size_bytes=one.size_gib * GIB if one.size_gib is not None else None,
            kind=None,
            rated_mts=one.rated_mts,
            configured_mts=one.configured_mts,
            manufacturer=None,
            part_number=one.part_number,
            serial=None,
            data_width_bits=None,
            total_width_bits=None,
            bank=None,
        )
        for one in declared.dimm
    )
    unread = (
        None
        if modules
        else Message(
            english("undeclared_modules", "memory modules: give a memory.dimm table for each")
        )
    )
    return Memory(total, total, modules or None, unread, None, None)


def _disks(machine: Machine, sheets: Sheets) -> Iterator[Disk]:
    """The disks, by names that they may have; their kind and transport by their sheets."""
    every = [one for one in machine.disk for _ in range(one.count)]
    for number, one in enumerate(every):
        known = disk_sheet.find(sheets.disks, one.model)
        kind = known.kind if known is not None else None
        sata = "sata" if known is not None and known.sata_gbps is not None else None
        yield Disk(
            name=f"nvme{number}n1" if kind == "nvme" else f"disk{number}",
            model=one.model,
            serial=one.serial,
            size_bytes=one.size_gb * 10**9 if one.size_gb is not None else None,
            kind=kind,
            transport="nvme" if kind == "nvme" else sata,
            firmware=one.firmware,
        )


def _disk_links(
    disks: Sequence[Disk], sheets: Sheets
) -> Iterator[tuple[str, tuple[float, Message]]]:
    """The most that each disk's own link carries, by its sheet, with the derivation."""
    for disk in disks:
        known = disk_sheet.find(sheets.disks, disk.model or "")
        rate = known.link_rate() if known is not None else None
        if rate is not None:
            yield disk.name, rate


def _scratches(machine: Machine, disks: Sequence[Disk], profile: str) -> tuple[Scratch, ...]:
    """The declared folders, one on each disk in their order.

    None where the disks are not equal: then nothing says which folder is on which disk. A night
    finds the file that an accepting run has kept.
    """
    declared = machine.scratch
    if len({disk.model for disk in disks}) != 1 or len(declared) > len(disks):
        return ()
    kept = scratch_place.keeps(len(declared)) and profile != "accept"
    budgets = scratch_place.budgets(profile, declared)
    return tuple(
        Scratch(
            path=one.path,
            component=disk.component,
            mount=one.path,
            kind="",
            source="",
            disks=(disk.name,),
            layers=(),
            free_bytes=disk.size_bytes or 0,
            write_bytes=budget.all_bytes,
            kept_bytes=budget.kept_bytes,
            keep=one.keep,
            sealed_bytes=scratch_place.KEPT_BYTES if kept and one.keep else 0,
        )
        for one, disk, budget in zip(declared, disks, budgets, strict=False)
    )


def _link(number: int, declared: DeclaredLink) -> NetworkLink:
    """A port that is up, on a card of its own."""
    infiniband = "/" in declared.name or declared.name.startswith("ib")
    counted = {name for names in network_card.COUNTERS.values() for name in names}
    return NetworkLink(
        name=declared.name,
        kind="infiniband" if infiniband else "ethernet",
        driver=None,
        speed_mbps=declared.speed_mbps,
        mac=None,
        up=True,
        virtual=False,
        pci_address=f"{_NOWHERE}:{number:02x}:00.1",
        bus="pci",
        is_virtual_function=False,
        pcie_width=_SHOWN,
        max_pcie_width=_SHOWN,
        counters={
            name: 0 for name in sorted(counted) if infiniband is not name.startswith(("rx", "tx"))
        },
    )


def _of_kernel(gpus: int) -> dict[str, dict[str, dict[str, int]]]:
    """The counters of the kernel: any server's has them all."""
    having = {"memory": (MEMORY,), "gpu": tuple(map(parts.Gpu, range(gpus)))}
    return {
        kind: {str(one): {} for one in having.get(components.counting(kind), ())}
        for kind in components.counted()
    }


def _places(addresses: Sequence[str], links: Sequence[NetworkLink]) -> list[str]:
    """The addresses of what has a place in the PCI tree; which one, no file says."""
    return [*addresses, *(str(link.pci_address) for link in links)]


def _board(machine: Machine) -> Board:
    declared = machine.system
    empty = Board(**dict.fromkeys(_BOARD), device_nodes=())  # type: ignore[arg-type]
    return replace(
        empty,
        name=declared.board,
        bios_version=declared.bios_version,
        kernel=declared.kernel,
        nvidia_driver=declared.driver,
    )


_BOARD = (
    "vendor",
    "name",
    "product",
    "serial",
    "bios_vendor",
    "bios_version",
    "bios_date",
    "secure_boot",
    "kernel",
    "os",
    "hostname",
    "machine_id",
    "boot_id",
    "nouveau_loaded",
    "nvidia_driver",
)


def _undeclared(
    machine: Machine,
    cards: Sequence[DeclaredGpu],
    models: Sequence[Sheet | None],
    disks: Sequence[Disk],
    scratches: Sequence[Scratch],
    wired: Sequence[_Links],
) -> Iterator[Message]:
    """What the file leaves out, and no sheet says either, with the key that declares it."""
    if machine.gpu_count() is None:
        yield Message(english("undeclared_gpus", "GPUs: give gpus, and a gpu table for each model"))
    names = [str(parts.Gpu(index)) for index in range(len(cards))]
    unnamed = [
        name
        for name, card in zip(names, cards, strict=True)
        if card.model is None and card.pci_id is None
    ]
    if unnamed:
        yield Message(
            english(
                "undeclared_models",
                "the model of {gpus}, so no floor of a sheet: give gpu.model or gpu.pci_id",
            ),
            {"gpus": Listed(tuple(unnamed))},
        )
    unknown = {
        str(card.model or card.pci_id)
        for card, model in zip(cards, models, strict=True)
        if model is None and (card.model or card.pci_id)
    }
    if unknown:
        yield Message(
            english("undeclared_sheets", "floors of {models}: there is no sheet of that model"),
            {"models": Listed(tuple(sorted(unknown)))},
        )
    slots = [
        name
        for name, card in zip(names, cards, strict=True)
        if card.link_gen is None or card.link_width is None
    ]
    if slots:
        yield Message(
            english(
                "undeclared_slots",
                "the slot of {gpus}, so the card alone sets the floors of its link: give "
                "gpu.link_gen and gpu.link_width",
            ),
            {"gpus": Listed(tuple(slots))},
        )
    unlinked = [
        name
        for name, card, model, links in zip(names, cards, models, wired, strict=True)
        if model is not None
        and model.nvlink is not None
        and card.nvlink_links is None
        and not links.active
    ]
    if unlinked:
        yield Message(
            english(
                "undeclared_nvlinks", "NVLinks of {gpus}: give gpu.nvlink_links, or gpu_pair.path"
            ),
            {"gpus": Listed(tuple(unlinked))},
        )
    if not (machine.cpu.cores or machine.cpu.threads):
        yield Message(
            english("undeclared_processors", "processors: give cpu.cores and cpu.threads")
        )
    else:
        if machine.cpu.cores is None:
            yield Message(english("undeclared_cores", "single cores: give cpu.cores"))
        if machine.cpu.sockets is None:
            yield Message(
                english("undeclared_sockets", "the memory of each socket: give cpu.sockets")
            )
    if machine.memory.total_gib is None:
        yield Message(english("undeclared_memory", "RAM: give memory.total_gib"))
    if not machine.memory.dimm:
        yield Message("undeclared_modules")
    if not machine.disk:
        yield Message(english("undeclared_disks", "disks: give a disk table for each model"))
    strange = sorted({disk.model or "" for disk in disks if disk.kind is None})
    if strange:
        yield Message(
            english(
                "undeclared_disk_sheets",
                "kind, link and floors of {models}: there is no sheet of that disk",
            ),
            {"models": Listed(tuple(strange))},
        )
    if not machine.scratch:
        yield Message(
            english(
                "undeclared_scratch",
                "what is written to disks and read from them: give a scratch table with a folder "
                "on each",
            )
        )
    elif not scratches:
        yield Message(
            english(
                "undeclared_scratch_disks",
                "what is written to disks and read from them: no file says on which disk a "
                "scratch folder lies, unless all disks are of one model and each has at most one",
            )
        )
    if not machine.network:
        yield Message(
            english("undeclared_network", "network cards: give a network table for each port")
        )
