"""The location of a finding's component, for people who search for it and for commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from acceptance.machine import recorded_inventory

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Commands are copied and typed: a text that does not look like a name counts as unknown, so that no
# quote, `$` or blank line gets into one.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/#+ -]{0,79}")


@dataclass(frozen=True, slots=True)
class Location:
    """The location of one component; what is unknown is None.

    PCI address, slot, serial number, UUID, the driver's index, the kernel's name.
    """

    address: str | None = None
    slot: str | None = None
    serial: str | None = None
    uuid: str | None = None
    index: str | None = None
    name: str | None = None

    def values(self) -> dict[str, str]:
        """The known values that may be part of a command, by name."""
        found = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: text for name, text in found if text is not None and _PLAIN.fullmatch(text)}


@dataclass(frozen=True, slots=True)
class Locations:
    """The locations of a run's components by the names in findings.

    Such names are `gpu0`, a PCI address, `disk:sda`, `dimm:A1`, `net:eth0`.
    """

    found: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, component: str | None) -> Location:
        """The location of a component; an empty one if it is unknown.

        A PCI address is a location by itself.
        """
        if component is None:
            return Location()
        if component in self.found:
            return self.found[component]
        return Location(address=component) if _ADDRESS.fullmatch(component) else Location()


NO_LOCATIONS = Locations()


def find_locations(inventory: Mapping[str, Any]) -> Locations:
    """The location of each component in a run's inventory."""
    return Locations(dict(_all(inventory)))


def _all(inventory: Mapping[str, Any]) -> Iterator[tuple[str, Location]]:
    for gpu in recorded_inventory.recorded_gpus(inventory):
        index = gpu.device.get("index")
        place = Location(
            address=gpu.address,
            slot=gpu.function.get("slot"),
            serial=gpu.device.get("serial"),
            uuid=gpu.device.get("uuid"),
            index=str(index) if index is not None else None,
        )
        yield gpu.name, place
        yield gpu.address, place
    for disk in recorded_inventory.rows(inventory, "disks"):
        place = Location(name=disk["name"], serial=disk.get("serial"))
        yield f"disk:{disk['name']}", place
        yield disk["name"], place
    for link in recorded_inventory.rows(inventory, "links"):
        yield f"net:{link['name']}", Location(name=link["name"], address=link.get("pci_address"))
    for dimm in recorded_inventory.rows(recorded_inventory.table(inventory, "memory"), "dimms"):
        yield f"dimm:{dimm['slot']}", Location(slot=dimm["slot"], serial=dimm.get("serial"))
