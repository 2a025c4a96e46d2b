"""The location of a finding's component, for people who search for it and for commands."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

from acceptance.core.advice import Advice
from acceptance.core.grouping import grouped
from acceptance.core.message import UserError
from acceptance.core.parts import Component, Function, parse
from acceptance.core.plan import SiteChecks
from acceptance.diagnosis.causes import NO_EVIDENCE, Evidence, evidence
from acceptance.expect import site_families
from acceptance.journal.run import Run
from acceptance.machine.gpu import gpus
from acceptance.machine.inventory import Inventory
from acceptance.reports.advice import sided

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CONTROLLER = re.compile(r"nvme\d+(?=n\d)")  # of nvme0n1 it is nvme0
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

    Such names are `gpu0`, a PCI address, `disk:sda`, `dimm:A1`, `net:eth0`. Beside them what else
    only the run has: `advice` is that of the measurements of the site's own checks, `measured` is
    the evidence for and against likely causes.
    """

    found: Mapping[Component, Location] = field(default_factory=lambda: MappingProxyType({}))
    advice: Mapping[str, Advice] = field(default_factory=lambda: MappingProxyType({}))
    measured: Evidence = NO_EVIDENCE

    def nowhere(self) -> Locations:
        """The same without the location of any component."""
        return replace(self, found=MappingProxyType({}))

    def of(self, component: Component | None) -> Location:
        """The location of a component; an empty one if it is unknown.

        A PCI address is a location by itself.
        """
        if component is None:
            return Location()
        if component in self.found:
            return self.found[component]
        return Location(address=str(component)) if isinstance(component, Function) else Location()


def find_locations(run: Run) -> Locations:
    """The location of each component of a run, and what else only the run has."""
    found = locate(run.inventory, run.plan.site)
    return replace(found, measured=evidence(run.verdict, kernel_names(run.inventory)))


def kernel_names(inventory: Inventory) -> Mapping[Component, Component]:
    """The GPUs, disks and network ports by the names that the kernel's messages have for them.

    A bridge is the GPU's where it is above no other GPU. Of several ports of one card the first has
    its PCI function.
    """
    found: dict[Component, Component] = {}
    below = []
    for gpu in gpus(inventory):
        found[parse(gpu.pci_address)] = gpu.name
        place = inventory.places.get(gpu.pci_address)
        below += [(bridge, gpu.name) for bridge in (place.bridges if place else ())]
    for bridge, above in grouped(below).items():
        if len(above) == 1:
            found.setdefault(parse(bridge), above[0])
    for disk in inventory.disks or ():
        controller = _CONTROLLER.match(disk.name)
        for name in (disk.name, *([controller[0]] if controller else [])):
            found.setdefault(parse(name), disk.component)
    for link in inventory.links or ():
        for known in (link.name, link.pci_address):
            if known:
                found.setdefault(parse(known), link.component)
    return found


def locate(inventory: Inventory, site: SiteChecks | None = None) -> Locations:
    """The location of each component in an inventory; `site` are the site's own checks.

    Families that this version cannot read have no advice.
    """
    advice: Mapping[str, Advice] = {}
    if site is not None:
        with contextlib.suppress(UserError):
            known = site_families.parse(site.families).measurements.by_name
            advice = {name: sided(one) for name, one in known.items()}
    return Locations(dict(_all(inventory)), advice)


def _all(inventory: Inventory) -> Iterator[tuple[Component, Location]]:
    for gpu in gpus(inventory):
        place = Location(
            address=gpu.pci_address,
            slot=gpu.function.slot,
            serial=gpu.serial,
            uuid=gpu.uuid,
            index=str(gpu.nvml_index) if gpu.nvml_index is not None else None,
        )
        yield gpu.name, place
        yield parse(gpu.pci_address), place
    for disk in inventory.disks or ():
        place = Location(name=disk.name, serial=disk.serial)
        yield disk.component, place
        yield parse(disk.name), place
    yield from (
        (link.component, Location(name=link.name, address=link.pci_address))
        for link in inventory.links or ()
    )
    yield from (
        (dimm.component, Location(slot=dimm.slot, serial=dimm.serial))
        for dimm in inventory.memory.dimms or ()
    )
