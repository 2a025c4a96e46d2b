"""Facts of a machine in one run: its parts with serial numbers, and its properties by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acceptance.core.limit import GIB
from acceptance.core.machine_facts import CountedParts, MachineFacts
from acceptance.core.record import Entry, Measured, RunStarted
from acceptance.machine import recorded_inventory
from acceptance.machine.recorded_inventory import Table

# Provenance that names the machine or changes at every start: it explains no difference.
_OWN = frozenset({"host", "boot_id", "selftest"})
_BOARD = ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver")
_CPU = ("model", "sockets", "cores", "threads", "governor")
_GPU = ("name", "pci_address", "vbios")
_TRAITS = ("power_limit_w", "ecc_enabled", "mig_enabled", "persistence", "compute_mode")
_DISK = ("model", "size_bytes", "firmware")
_DIMM = ("size_bytes", "kind", "configured_mts", "part_number")

Facts = dict[tuple[str, str], str]


def circumstances(
    provenance: Mapping[str, str], inventory: Mapping[str, Any], **more: str | None
) -> Facts:
    """Facts by component ("" for the machine) and name, plus `more` of the machine.

    An unknown fact is absent. `inventory` is plain data from a journal, written by any version.
    """
    found: Facts = {("", name): said for name, said in more.items() if said}
    found |= {("", name): said for name, said in provenance.items() if name not in _OWN}
    found |= {
        (component, name): text(value)
        for component, name, value in _all(inventory)
        if value is not None
    }
    return found


def text(value: object) -> str:
    """A value as the text of a fact; booleans become on or off."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _all(inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    yield from _some("", recorded_inventory.table(inventory, "board"), _BOARD)
    yield from _some("cpu", recorded_inventory.table(inventory, "cpu"), _CPU)
    memory = recorded_inventory.table(inventory, "memory")
    total = memory.get("total_bytes")
    yield "memory", "GiB", round(total / GIB) if isinstance(total, int) else None
    for dimm in recorded_inventory.rows(memory, "dimms"):
        yield from _some(f"dimm:{dimm.get('slot')}", dimm, _DIMM)
    for disk in recorded_inventory.rows(inventory, "disks"):
        yield from _some(f"disk:{disk.get('name')}", disk, _DISK)
    for link in recorded_inventory.rows(inventory, "links"):
        yield from _some(f"net:{link.get('name')}", link, ("speed_mbps", "driver"))
    for gpu in recorded_inventory.recorded_gpus(inventory):
        yield from _some(gpu.name, gpu.device, _GPU)
        yield from _some(gpu.name, recorded_inventory.table(gpu.device, "traits"), _TRAITS)


def _some(
    component: str, table: Mapping[str, Any], names: Sequence[str]
) -> Iterator[tuple[str, str, object]]:
    for name in names:
        yield component, name, table.get(name)


# Measured under load or after it, because an idle card slows its PCIe link down: a run's lowest
# value counts.
_LINKS = {
    "gpu_link_gen": "link_gen",
    "gpu_link_width": "link_width",
    "nvlink_active": "nvlinks",
    "nvlink_speed": "nvlink_speed",
}
_OF_GPU = ("serial", "memory_bytes")
_OF_TRAITS = ("cuda_cores", "max_link_gen_here", "max_link_width_here")
_OF_DISK = ("transport", "kind")
_OF_LINK = (
    "kind",
    "bus",
    "is_virtual_function",
    "pci_address",
    "up",
    "pcie_speed_gts",
    "pcie_width",
)
_FOR_PEOPLE = ("memory", "GiB")  # rounded for people; `total_bytes` has the exact value
_MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")
# IEEE 802: the bits of the first octet that mark an address as a group's, or as set by an
# administrator rather than the manufacturer.
_NO_MAKERS = 0x03


def facts_of(entries: Sequence[Entry]) -> MachineFacts | None:
    """The facts of a run's machine; None if its journal has no beginning or no inventory."""
    start = next(
        ((entry.utc, entry.body.run_id) for entry in entries if isinstance(entry.body, RunStarted)),
        None,
    )
    inventory = recorded_inventory.observed_record(entries).inventory
    if start is None or not inventory:
        return None
    facts = _facts(inventory)
    for name, value in _links(entries).items():
        facts[name] = _number(min(value, float(facts.get(name, value))))
    return MachineFacts(
        run_id=start[1],
        utc=start[0],
        parts=tuple(component for component, _ in _parts(inventory)),
        identities=recorded_inventory.identities(inventory),
        facts=tuple((component, name, told) for (component, name), told in facts.items()),
        looked=tuple(_kinds_known(inventory)),
    )


def _kinds_known(inventory: Table) -> Iterator[str]:
    """The kinds of parts that the inventory lists, even if the list is empty.

    Only root can read the DIMMs.
    """
    for kind, table, name in (
        ("gpu", inventory, "pci"),
        ("disk", inventory, "disks"),
        ("net", inventory, "links"),
        ("dimm", recorded_inventory.table(inventory, "memory"), "dimms"),
    ):
        if isinstance(table.get(name), list | tuple):
            yield kind


def _parts(inventory: Table) -> Iterator[tuple[str, Table]]:
    """Every part found, with the facts that `circumstances` leaves out."""
    for gpu in recorded_inventory.recorded_gpus(inventory):
        yield (
            gpu.name,
            {**_of_gpu(gpu.device), "pci_address": gpu.address, "slot": gpu.function.get("slot")},
        )
    for disk in recorded_inventory.rows(inventory, "disks"):
        yield f"disk:{disk.get('name')}", {name: disk.get(name) for name in _OF_DISK}
    for dimm in recorded_inventory.rows(recorded_inventory.table(inventory, "memory"), "dimms"):
        yield f"dimm:{dimm.get('slot')}", {}
    links = recorded_inventory.rows(inventory, "links")
    for link in links:
        yield (
            f"net:{link.get('name')}",
            {**{name: link.get(name) for name in _OF_LINK}, "mac": _own_mac(link, links)},
        )


def _of_gpu(device: Table) -> dict[str, object]:
    traits = recorded_inventory.table(device, "traits")
    found = {name: device.get(name) for name in _OF_GPU} | {
        name: traits.get(name) for name in _OF_TRAITS
    }
    # a GPU that no longer answers reports no links
    if traits and not device.get("error"):
        found["nvlinks"] = sum(
            link.get("active") is True for link in recorded_inventory.rows(device, "links")
        )
    return found


def _own_mac(link: Table, links: Sequence[Table]) -> str | None:
    """The address that a card was made with; None if that is unknown.

    An address shared by two links is a bond's; one set by an administrator identifies no card.
    """
    mac = link.get("mac")
    if not isinstance(mac, str) or not _MAC.fullmatch(mac) or int(mac[:2], 16) & _NO_MAKERS:
        return None
    return mac if sum(other.get("mac") == mac for other in links) == 1 else None


def _facts(inventory: Table) -> Facts:
    memory = recorded_inventory.table(inventory, "memory")
    more: list[tuple[str, str, object]] = [
        ("", "board_serial", recorded_inventory.table(inventory, "board").get("serial")),
        ("memory", "total_bytes", memory.get("total_bytes")),
        ("memory", "ecc", memory.get("ecc")),
        *(
            (component, name, value)
            for component, told in _parts(inventory)
            for name, value in told.items()
        ),
    ]
    found = circumstances({}, inventory) | {
        (component, name): text(value) for component, name, value in more if value is not None
    }
    return {name: told for name, told in found.items() if name != _FOR_PEOPLE}


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _links(entries: Sequence[Entry]) -> dict[tuple[str, str], float]:
    """The lowest measured value of each link, under load and after it.

    Values that are not finite are ignored.
    """
    found: dict[tuple[str, str], float] = {}
    for entry in entries:
        body = entry.body
        if not isinstance(body, Measured) or body.measurement not in _LINKS:
            continue
        if body.value is not None and math.isfinite(body.value):
            name = (body.component, _LINKS[body.measurement])
            found[name] = min(body.value, found.get(name, body.value))
    return found


_PREFIX = {"gpu": "gpu", "disk:": "disk", "dimm:": "dimm", "net:": "net"}
NETWORK = "net"


def kind_of(component: str) -> str:
    """The kind of part that a component is, as the rules name it.

    One of "gpu", "disk", "dimm", "net", "cpu", "memory"; "machine" for the machine.
    """
    found = (kind for prefix, kind in _PREFIX.items() if component.startswith(prefix))
    return next(found, component or "machine")


def _counts(component: str, facts: Facts, counted: CountedParts) -> bool:
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

    def fact(self, part: str, name: str) -> str | None:
        """One fact; None if it is unknown."""
        return self.facts.get((part, name))

    def describe(self, part: str) -> str:
        """A part with its model, identity and place, for somebody who searches for it."""
        model = (
            self.fact(part, "name") or self.fact(part, "model") or self.fact(part, "part_number")
        )
        identity = self.identities.get(part) or self.fact(part, "mac")
        words = ", ".join(filter(None, [model, identity, self.place(part)]))
        return f"{part} ({words})" if words else part

    def place(self, part: str) -> str | None:
        """A part's PCI address, with its slot's name if known."""
        slot, address = self.fact(part, "slot"), self.fact(part, "pci_address")
        return f"{address} in slot {slot}" if slot and address else address

    def macs(self) -> frozenset[str]:
        """The manufacturers' addresses of its network cards."""
        return frozenset(filter(None, (self.fact(part, "mac") for part in self.names)))

    def links(self, shared: frozenset[str]) -> dict[str, str]:
        """What identifies each network link.

        It is the MAC address if that is `shared` with the other run, else the PCI address with the
        port. Link names are no help: they change with the operating system.
        """
        found = {}
        for part in self.names:
            mac, place = self.fact(part, "mac"), self.fact(part, "pci_address")
            if kind_of(part) == NETWORK and mac is not None and mac in shared:
                found[part] = mac
            elif kind_of(part) == NETWORK and place is not None:
                found[part] = f"{place}/{part.partition('/')[2]}"
        return found
