"""The machine as one run tells of it: its parts, their serial numbers, and facts about them.

Taken from a journal alone, whatever version wrote it: what was not told is absent. The run that accepted a machine and tonight's are read
the same way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from acceptance.judge import shown
from acceptance.judge.birth import Birth
from acceptance.judge.circumstances import Facts, circumstances, text
from acceptance.judge.record import Entry, Measured, RunStarted
from acceptance.judge.shown import Table

# Measured under load, or after it: the least of a run is what its links were worth. An idle card slows its PCIe link down.
_LINKS = {
    "gpu_link_gen": "link_gen",
    "gpu_link_width": "link_width",
    "nvlink_active": "nvlinks",
    "nvlink_speed": "nvlink_speed",
}
_OF_GPU = ("serial", "memory_bytes")
_OF_TRAITS = ("cuda_cores", "max_link_gen_here", "max_link_width_here")
_OF_DISK = ("transport", "kind")
_OF_LINK = ("kind", "bus", "is_virtual_function", "pci_address", "up", "pcie_speed_gts", "pcie_width")
_FOR_PEOPLE = ("memory", "GiB")  # rounded: `total_bytes` stands beside it
_MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")
# IEEE 802: the bits of the first octet that mark an address as a group's, or as given by an administrator and not by the maker.
_NO_MAKERS = 0x03


def of(entries: Sequence[Entry]) -> Birth | None:
    """What a run tells of its machine; None where its journal has no beginning or no inventory."""
    start = next(((entry.utc, entry.body.run_id) for entry in entries if isinstance(entry.body, RunStarted)), None)
    inventory = shown.observed(entries).inventory
    if start is None or not inventory:
        return None
    facts = _facts(inventory)
    for name, value in _links(entries).items():
        facts[name] = _number(min(value, float(facts.get(name, value))))
    return Birth(
        run_id=start[1],
        utc=start[0],
        parts=tuple(component for component, _ in _parts(inventory)),
        identities=shown.identities(inventory),
        facts=tuple((component, name, told) for (component, name), told in facts.items()),
        looked=tuple(_looked(inventory)),
    )


def _looked(inventory: Table) -> Iterator[str]:
    """The kinds of parts of which the inventory says what there is, were it nothing: DIMMs are for root to read."""
    for kind, table, name in (
        ("gpu", inventory, "pci"),
        ("disk", inventory, "disks"),
        ("net", inventory, "links"),
        ("dimm", shown.table(inventory, "memory"), "dimms"),
    ):
        if isinstance(table.get(name), list | tuple):
            yield kind


def _parts(inventory: Table) -> Iterator[tuple[str, Table]]:
    """Every part that has been found, and what is told of it beside what `circumstances` takes."""
    for gpu in shown.gpus(inventory):
        yield gpu.name, {**_of_gpu(gpu.device), "pci_address": gpu.address, "slot": gpu.function.get("slot")}
    for disk in shown.rows(inventory, "disks"):
        yield f"disk:{disk.get('name')}", {name: disk.get(name) for name in _OF_DISK}
    for dimm in shown.rows(shown.table(inventory, "memory"), "dimms"):
        yield f"dimm:{dimm.get('slot')}", {}
    links = shown.rows(inventory, "links")
    for link in links:
        yield f"net:{link.get('name')}", {**{name: link.get(name) for name in _OF_LINK}, "mac": _own_mac(link, links)}


def _of_gpu(device: Table) -> dict[str, object]:
    traits = shown.table(device, "traits")
    found = {name: device.get(name) for name in _OF_GPU} | {name: traits.get(name) for name in _OF_TRAITS}
    if traits and not device.get("error"):  # one that has stopped answering tells nothing of its links
        found["nvlinks"] = sum(link.get("active") is True for link in shown.rows(device, "links"))
    return found


def _own_mac(link: Table, links: Sequence[Table]) -> str | None:
    """The address that a card was made with: one that two links tell is that of a bond, one that an administrator gave tells of no card."""
    mac = link.get("mac")
    if not isinstance(mac, str) or not _MAC.fullmatch(mac) or int(mac[:2], 16) & _NO_MAKERS:
        return None
    return mac if sum(other.get("mac") == mac for other in links) == 1 else None


def _facts(inventory: Table) -> Facts:
    memory = shown.table(inventory, "memory")
    more: list[tuple[str, str, object]] = [
        ("", "board_serial", shown.table(inventory, "board").get("serial")),
        ("memory", "total_bytes", memory.get("total_bytes")),
        ("memory", "ecc", memory.get("ecc")),
        *((component, name, value) for component, told in _parts(inventory) for name, value in told.items()),
    ]
    found = circumstances({}, inventory) | {
        (component, name): text(value) for component, name, value in more if value is not None
    }
    return {name: told for name, told in found.items() if name != _FOR_PEOPLE}


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _links(entries: Sequence[Entry]) -> dict[tuple[str, str], float]:
    """What links were worth under load and after it: the least that was measured. What is no finite number was not told."""
    found: dict[tuple[str, str], float] = {}
    for entry in entries:
        body = entry.body
        if not isinstance(body, Measured) or body.measurement not in _LINKS:
            continue
        if body.value is not None and math.isfinite(body.value):
            name = (body.component, _LINKS[body.measurement])
            found[name] = min(body.value, found.get(name, body.value))
    return found
