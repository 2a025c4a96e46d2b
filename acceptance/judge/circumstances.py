"""What a run ran on and with, as facts by name: versions, firmware, models, parts. Runs that differ in them may differ for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acceptance.judge import shown
from acceptance.judge.measurement import GIB

# Of the provenance, what names the machine or is another at every start and explains nothing.
_OWN = frozenset({"host", "boot_id", "selftest"})
_BOARD = ("vendor", "name", "bios_version", "kernel", "os", "nvidia_driver")
_CPU = ("model", "sockets", "cores", "threads", "governor")
_GPU = ("name", "pci_address", "vbios")
_TRAITS = ("power_limit_w", "ecc_enabled", "mig_enabled", "persistence", "compute_mode")
_DISK = ("model", "size_bytes", "firmware")
_DIMM = ("size_bytes", "kind", "configured_mts", "part_number")

Facts = dict[tuple[str, str], str]


def circumstances(provenance: Mapping[str, str], inventory: Mapping[str, Any], **more: str | None) -> Facts:
    """Facts by component ("" for the machine) and name, with `more` of the machine; what is not known is absent.

    An inventory is plain data as a journal holds it, of whatever version wrote it.
    """
    found: Facts = {("", name): said for name, said in more.items() if said}
    found |= {("", name): said for name, said in provenance.items() if name not in _OWN}
    found |= {(component, name): text(value) for component, name, value in _all(inventory) if value is not None}
    return found


def text(value: object) -> str:
    """A value as a fact: switches are on or off."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _all(inventory: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    yield from _some("", shown.table(inventory, "board"), _BOARD)
    yield from _some("cpu", shown.table(inventory, "cpu"), _CPU)
    memory = shown.table(inventory, "memory")
    total = memory.get("total_bytes")
    yield "memory", "GiB", round(total / GIB) if isinstance(total, int) else None
    for dimm in shown.rows(memory, "dimms"):
        yield from _some(f"dimm:{dimm.get('slot')}", dimm, _DIMM)
    for disk in shown.rows(inventory, "disks"):
        yield from _some(f"disk:{disk.get('name')}", disk, _DISK)
    for link in shown.rows(inventory, "links"):
        yield from _some(f"net:{link.get('name')}", link, ("speed_mbps", "driver"))
    for gpu in shown.gpus(inventory):
        yield from _some(gpu.name, gpu.device, _GPU)
        yield from _some(gpu.name, shown.table(gpu.device, "traits"), _TRAITS)


def _some(component: str, table: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, str, object]]:
    for name in names:
        yield component, name, table.get(name)
