"""Facts of a machine in one run: its parts with serial numbers, and its properties by name.

Match the components of two runs: by serial number or UUID if both have one, else by name.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.grouping import grouped
from acceptance.core.limit import GIB
from acceptance.core.machine_facts import CountedParts, MachineFacts
from acceptance.core.parts import CPU, ITSELF, MEMORY, Component, Gpu, Part, Renamed, renamed
from acceptance.core.record import Entry, Measured, RunStarted, records
from acceptance.loads.train import digest_contract as digest
from acceptance.machine import gpu as machine_gpu
from acceptance.machine import observation
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory, NetworkLink

# What firmware writes for a part without a serial number. A single part may have it one night, and
# another part the next.
_NOBODY = re.compile("0*|f{4,}|n/?a|none|unknown", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MovedPart:
    """One part under two names: it was moved to another slot."""

    identity: str
    before: Component
    after: Component


@dataclass(frozen=True, slots=True)
class ReplacedPart:
    """Two parts under one name."""

    component: Component
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Matching:
    """The components of a later run matched to those of the first.

    `names` has the first run's name of each.
    """

    names: Mapping[Component, Component]
    moved: tuple[MovedPart, ...]
    replaced: tuple[ReplacedPart, ...]

    def name(self, component: Component) -> Component:
        """The name in the first run; a path is named by its two ends."""
        return renamed(component, lambda end: self.names.get(end, end))

    def is_other(self, component: Component) -> bool:
        """Whether a component of the first run is another part in the later one.

        A path is another part if one of its ends is.
        """
        known = {one.component for one in self.replaced}
        return any(end in known for end in component.ends)


def identities(inventory: Inventory) -> dict[Component, str]:
    """The UUID (of GPUs) or serial number of each component, as the part reports it.

    They may be ambiguous; `unique_identities` has those that identify one part alone.
    """
    parts: dict[Component, str | None] = {
        gpu.name: gpu.uuid or gpu.serial for gpu in gpus(inventory)
    }
    parts |= {disk.component: disk.serial for disk in inventory.disks or ()}
    parts |= {dimm.component: dimm.serial for dimm in inventory.memory.dimms or ()}
    return {component: identity for component, identity in parts.items() if identity}


def unique_identities(identities: Mapping[Component, str]) -> dict[Component, str]:
    """Identities by component, without those that identify no part.

    Left out are identities that several components share, and placeholders.
    """
    times = Counter(identities.values())
    return {
        component: identity
        for component, identity in identities.items()
        if times[identity] == 1 and not _NOBODY.fullmatch(identity.strip())
    }


def match(
    first: Mapping[Component, str], later: Mapping[Component, str], others: Iterable[Component]
) -> Matching:
    """Match the components of a later run to those of the first.

    `first` and `later` are identities by component, `others` all components of the later run. A
    part that only the later run has keeps its name if the first run does not use it, and gets a `'`
    otherwise.
    """
    before, after = (
        {identity: component for component, identity in unique_identities(found).items()}
        for found in (first, later)
    )
    both = {
        identity: (before[identity], after[identity]) for identity in before.keys() & after.keys()
    }
    names = {new: old for old, new in both.values()}
    taken = set(names.values())
    for component in sorted({end for name in (*later, *others) for end in name.ends} - set(names)):
        name = component
        while name in taken:
            name = Renamed(name)
        names[component] = name
        taken.add(name)
    moved = sorted((old, new, identity) for identity, (old, new) in both.items() if old != new)
    replaced = sorted(
        (old, first[old], later[new])
        for new, old in names.items()
        if old in first and new in later and first[old] != later[new]
    )
    return Matching(
        names,
        tuple(MovedPart(identity, old, new) for old, new, identity in moved),
        tuple(ReplacedPart(*one) for one in replaced),
    )


# Provenance that names the machine or changes at every start: it explains no difference.
_OWN = frozenset({"host", "boot_id", "selftest", "order_number", "asset_tag", "psu_watts"})

Facts = dict[tuple[Component, str], str]


def circumstances(provenance: Mapping[str, str], inventory: Inventory, **more: str | None) -> Facts:
    """Facts by component (ITSELF for the machine) and name, plus `more` of the machine.

    An unknown fact is absent.
    """
    found: Facts = {(ITSELF, name): said for name, said in more.items() if said}
    found |= {(ITSELF, name): said for name, said in provenance.items() if name not in _OWN}
    found |= {
        (component, name): text(value)
        for component, name, value in _all(inventory)
        if value is not None
    }
    return found


def text(value: object) -> str:
    """A value as the text of a fact; booleans become on or off."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


Fact = tuple[Component, str, object]  # component, name, value; None: unknown


def _named(component: Component, **values: object) -> Iterator[Fact]:
    return ((component, name, value) for name, value in values.items())


def _all(inventory: Inventory) -> Iterator[Fact]:
    board, cpu, memory = inventory.board, inventory.cpu, inventory.memory
    yield from _named(
        ITSELF,
        vendor=board.vendor,
        name=board.name,
        bios_version=board.bios_version,
        kernel=board.kernel,
        os=board.os,
        nvidia_driver=board.nvidia_driver,
    )
    yield from _named(
        CPU,
        model=cpu.model,
        sockets=cpu.sockets,
        cores=cpu.cores,
        threads=cpu.threads,
        governor=cpu.governor,
    )
    total = memory.total_bytes
    yield MEMORY, "GiB", round(total / GIB) if total is not None else None
    for dimm in memory.dimms or ():
        yield from _named(
            dimm.component,
            size_bytes=dimm.size_bytes,
            kind=dimm.kind,
            configured_mts=dimm.configured_mts,
            part_number=dimm.part_number,
        )
    for disk in inventory.disks or ():
        yield from _named(
            disk.component, model=disk.model, size_bytes=disk.size_bytes, firmware=disk.firmware
        )
    for link in inventory.links or ():
        yield from _named(link.component, speed_mbps=link.speed_mbps, driver=link.driver)
    for gpu in gpus(inventory):
        if (device := gpu.device) is not None:
            yield from _named(
                gpu.name, name=device.name, pci_address=device.pci_address, vbios=device.vbios
            )
        if (traits := gpu.traits) is not None:
            yield from _named(
                gpu.name,
                power_limit_w=traits.power_limit_w,
                ecc_enabled=traits.ecc_enabled,
                mig_enabled=traits.mig_enabled,
                persistence=traits.persistence,
                compute_mode=traits.compute_mode,
            )


# Measured under load or after it, because an idle card slows its PCIe link down: a run's lowest
# value counts.
_LINKS = {
    "gpu_link_gen": "link_gen",
    "gpu_link_width": "link_width",
    "nvlink_active": "nvlinks",
    "nvlink_speed": "nvlink_speed",
}
_FOR_PEOPLE = (MEMORY, "GiB")  # rounded for people; `total_bytes` has the exact value
_MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")
# IEEE 802: the bits of the first octet that mark an address as a group's, or as set by an
# administrator rather than the manufacturer.
_NO_MAKERS = 0x03


def facts_of(entries: Sequence[Entry]) -> MachineFacts | None:
    """The facts of a run's machine; None if its journal has no beginning or no inventory."""
    start = next(records(entries, RunStarted), None)
    inventory = observation.inventory_of(entries)
    if start is None or inventory == observation.NOTHING:
        return None
    facts = _facts(inventory) | _training(entries)
    for name, value in _links(entries).items():
        facts[name] = _number(min(value, float(facts.get(name, value))))
    return MachineFacts(
        run_id=start[1].run_id,
        utc=start[0].utc,
        parts=tuple(_parts(inventory)),
        identities=identities(inventory),
        facts=tuple((component, name, told) for (component, name), told in facts.items()),
        # the kinds of parts that the inventory lists, even if the list is empty
        looked=tuple(
            kind
            for kind, listed in (
                ("gpu", inventory.pci),
                ("disk", inventory.disks),
                ("net", inventory.links),
                ("dimm", inventory.memory.dimms),  # only root can read them
            )
            if listed is not None
        ),
    )


def _parts(inventory: Inventory) -> Iterator[Component]:
    """The component of every part found."""
    yield from (gpu.name for gpu in gpus(inventory))
    for parts in (inventory.disks, inventory.memory.dimms, inventory.links):
        yield from (part.component for part in parts or ())


def _more(inventory: Inventory) -> Iterator[Fact]:
    """The facts that `circumstances` leaves out."""
    memory = inventory.memory
    yield ITSELF, "board_serial", inventory.board.serial
    yield from _named(MEMORY, total_bytes=memory.total_bytes, ecc=memory.ecc)
    for gpu in gpus(inventory):
        yield from _of_gpu(gpu)
    for disk in inventory.disks or ():
        yield from _named(disk.component, transport=disk.transport, kind=disk.kind)
    links = inventory.links or ()
    for link in links:
        yield from _named(
            link.component,
            kind=link.kind,
            bus=link.bus,
            is_virtual_function=link.is_virtual_function,
            pci_address=link.pci_address,
            up=link.up,
            pcie_speed_gts=link.pcie_speed_gts,
            pcie_width=link.pcie_width,
            mac=_own_mac(link, links),
        )


def _of_gpu(gpu: machine_gpu.Gpu) -> Iterator[Fact]:
    yield from _named(gpu.name, serial=gpu.serial, memory_bytes=gpu.memory_bytes)
    if (traits := gpu.traits) is not None:
        yield from _named(
            gpu.name,
            cuda_cores=traits.cuda_cores,
            max_link_gen_here=traits.max_link_gen_here,
            max_link_width_here=traits.max_link_width_here,
            # a GPU that no longer answers reports no links
            nvlinks=None if gpu.error else gpu.active_links,
        )
    yield from _named(gpu.name, pci_address=gpu.pci_address, slot=gpu.function.slot)


def _own_mac(link: NetworkLink, links: Sequence[NetworkLink]) -> str | None:
    """The address that a card was made with; None if that is unknown.

    An address shared by two links is a bond's; one set by an administrator identifies no card.
    """
    mac = link.mac
    if mac is None or not _MAC.fullmatch(mac) or int(mac[:2], 16) & _NO_MAKERS:
        return None
    return mac if sum(other.mac == mac for other in links) == 1 else None


def _facts(inventory: Inventory) -> Facts:
    found = circumstances({}, inventory) | {
        (component, name): text(value)
        for component, name, value in _more(inventory)
        if value is not None
    }
    return {name: told for name, told in found.items() if name != _FOR_PEOPLE}


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _links(entries: Sequence[Entry]) -> dict[tuple[Component, str], float]:
    """The lowest measured value of each link, under load and after it.

    Values that are not finite are ignored.
    """
    found = grouped(
        ((body.component, _LINKS[body.measurement]), body.value)
        for _, body in records(entries, Measured)
        if body.value is not None and math.isfinite(body.value) and body.measurement in _LINKS
    )
    return {name: min(values) for name, values in found.items()}


def _training(entries: Sequence[Entry]) -> Facts:
    """The bits of each GPU's training run by format, and the versions that they depend on.

    A run that made the check twice with different outcomes has both.
    """
    found: dict[tuple[Component, str], set[str]] = {}
    for _, body in records(entries, Table):
        if body.name == digest.TABLE and body.columns == digest.COLUMNS:
            for dtype, _, _, *digests, _ in body.rows:
                bits = " ".join(map(str, digests))
                found.setdefault((body.component, f"train_bits_{dtype}"), set()).add(bits)
        if body.name == digest.VERSIONS and body.columns == digest.VERSION_COLUMNS:
            versions = ", ".join(f"{what} {version}" for what, version in body.rows)
            found.setdefault((body.component, "train_versions"), set()).add(versions)
    return {name: "; ".join(sorted(told)) for name, told in found.items()}


NETWORK = "net"


def kind_of(component: Component) -> str:
    """The kind of part that a component is, as the rules name it.

    One of "gpu", "disk", "dimm", "net", "cpu", "memory"; "machine" for the machine.
    """
    if isinstance(component, Part):
        return component.kind
    return "gpu" if isinstance(component.ends[0], Gpu) else str(component) or "machine"


def _counts(component: Component, facts: Facts, counted: CountedParts) -> bool:
    kind = kind_of(component)
    if kind == "disk":
        return (
            facts.get((component, "transport")) in counted.disks
            and facts.get((component, "kind")) != "virtual"
        )
    if kind == NETWORK:
        own = (
            facts.get((component, "bus")) == "pci"
            and facts.get((component, "is_virtual_function")) != "on"
        )
        return own and facts.get((component, "kind")) in counted.links
    return True


class Parts:
    """The parts of one run that count, their identities, and the facts of them and the machine."""

    def __init__(self, told: MachineFacts, counted: CountedParts) -> None:
        facts = told.by_name()
        self.names = tuple(part for part in told.parts if _counts(part, facts, counted))
        others = set(told.parts) - set(self.names)
        self.facts = {name: text for name, text in facts.items() if name[0] not in others}
        self.identities = {
            part: identity for part, identity in told.identities.items() if part in self.names
        }
        self.looked = frozenset(told.looked)

    def fact(self, part: Component, name: str) -> str | None:
        """One fact; None if it is unknown."""
        return self.facts.get((part, name))

    def describe(self, part: Component) -> str:
        """A part with its model, identity and place, for somebody who searches for it."""
        model = (
            self.fact(part, "name") or self.fact(part, "model") or self.fact(part, "part_number")
        )
        identity = self.identities.get(part) or self.fact(part, "mac")
        words = ", ".join(filter(None, [model, identity, self.place(part)]))
        return f"{part} ({words})" if words else str(part)

    def place(self, part: Component) -> str | None:
        """A part's PCI address, with its slot's name if known."""
        slot, address = self.fact(part, "slot"), self.fact(part, "pci_address")
        return f"{address} in slot {slot}" if slot and address else address

    def macs(self) -> frozenset[str]:
        """The manufacturers' addresses of its network cards."""
        return frozenset(filter(None, (self.fact(part, "mac") for part in self.names)))

    def links(self, shared: frozenset[str]) -> dict[Component, str]:
        """What identifies each network link.

        It is the MAC address if that is `shared` with the other run, else the PCI address with the
        port. Link names are no help: they change with the operating system.
        """
        found: dict[Component, str] = {}
        for part in self.names:
            mac, place = self.fact(part, "mac"), self.fact(part, "pci_address")
            if not isinstance(part, Part) or part.kind != NETWORK:
                continue
            if mac is not None and mac in shared:
                found[part] = mac
            elif place is not None:
                found[part] = f"{place}/{part.name.partition('/')[2]}"
        return found
