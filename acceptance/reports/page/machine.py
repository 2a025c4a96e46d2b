"""The machine as observed: its parts in rows, and a card for every GPU. Pure.

What was not captured is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acceptance.core.language import Language
from acceptance.core.limit import GIB, number
from acceptance.machine import recorded_inventory
from acceptance.machine.recorded_inventory import RecordedGpu

Inventory = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GpuCard:
    """One GPU: its component name, its model, and its facts in pairs of label and value.

    `trouble` is the driver's reason why it cannot be used.
    """

    name: str
    model: str | None
    facts: tuple[tuple[str, str], ...]
    trouble: str | None


def parts(inventory: Inventory, language: Language) -> Iterator[tuple[str, str]]:
    """Everything but the GPUs, as rows of name and text."""
    if not inventory:
        return
    _ = language
    cpu, memory, board = inventory["cpu"], inventory["memory"], inventory["board"]
    for label, keys in ((_("board"), ("vendor", "name")), (_("system"), ("os", "kernel"))):
        if text := ", ".join(board[key] for key in keys if board.get(key)):
            yield label, text
    if board.get("bios_version"):
        yield _("BIOS"), board["bios_version"]
    if board.get("nvidia_driver"):
        yield _("NVIDIA driver"), board["nvidia_driver"]
    yield _("processor"), ", ".join([cpu["model"] or _("model not shown"), *_counts(cpu, _)])
    yield _("memory"), f"{number(memory['total_bytes'] / GIB)} GiB"
    yield from _modules(memory, _)
    for disk in inventory["disks"]:
        size = f"{disk['size_bytes'] / 1e9:.0f} GB"
        yield (
            _("disk {name}", name=disk["name"]),
            _joined(disk["model"] or _("model not shown"), size, disk["kind"]),
        )
    for link in inventory["links"]:
        speed = f"{link['speed_mbps']} Mbit/s" if link["speed_mbps"] else None
        state, driver = _("up") if link["up"] else _("down"), link["driver"] or _("no driver")
        yield (
            _("network {name}", name=link["name"]),
            _joined(state, speed, driver, link.get("pci_address")),
        )


def _joined(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def _counts(cpu: Mapping[str, Any], _: Language) -> Iterator[str]:
    if cpu["sockets"] is not None:
        yield _.ngettext("{n} socket", "{n} sockets", cpu["sockets"])
    if cpu["cores"] is not None:
        yield _.ngettext("{n} core", "{n} cores", cpu["cores"])
    if cpu["threads"] is not None:
        yield _.ngettext("{n} thread", "{n} threads", cpu["threads"])


def _modules(memory: Mapping[str, Any], _: Language) -> Iterator[tuple[str, str]]:
    """The memory modules; equal ones share a row."""
    alike: dict[str, list[str]] = {}
    for dimm in memory["dimms"] or ():
        words = (
            f"{number(dimm['size_bytes'] / GIB)} GiB"
            if dimm["size_bytes"] is not None
            else _("size not told"),
            dimm["kind"],
            _("at {rate} MT/s", rate=dimm["configured_mts"])
            if dimm["configured_mts"] is not None
            else None,
            dimm["part_number"],
        )
        alike.setdefault(" ".join(part for part in words if part), []).append(dimm["slot"])
    for text, slots in alike.items():
        many = len(slots) > 1
        yield (
            _("{count} modules", count=len(slots)) if many else _("module"),
            _("{text}, each in {slots}", text=text, slots=", ".join(slots))
            if many
            else f"{text}, {slots[0]}",
        )
    if memory["dimms_unread"]:
        yield _("modules"), _("not read: {reason}", reason=memory["dimms_unread"])


def gpu_cards(inventory: Inventory, language: Language) -> Iterator[GpuCard]:
    """The GPUs on the PCI bus in order, then those that only the driver knows."""
    due = recorded_inventory.recorded_gpus(inventory)
    for gpu in due:
        facts = (*_link(gpu, language), *_facts(gpu.device, language))
        yield GpuCard(gpu.name, gpu.device.get("name"), facts, gpu.device.get("error"))
    placed = {gpu.address for gpu in due}
    others = [
        device
        for device in recorded_inventory.devices(inventory)
        if device["pci_address"] not in placed
    ]
    # those without an address last
    for device in sorted(others, key=lambda device: not device["pci_address"]):
        name = f"NVML {device['index']}"
        yield GpuCard(
            name, device.get("name"), tuple(_facts(device, language)), device.get("error")
        )


def _link(gpu: RecordedGpu, language: Language) -> Iterator[tuple[str, str]]:
    yield language("PCI address"), gpu.address
    if gpu.function.get("slot"):
        yield language("slot"), gpu.function["slot"]
    traits = gpu.device.get("traits") or {}
    width, generation = traits.get("max_link_width_here"), traits.get("max_link_gen_here")
    if width is not None and generation is not None:
        yield (
            language("PCIe link"),
            language("generation {generation}, x{width}", generation=generation, width=width),
        )
    if not gpu.function["driver"]:
        yield language("kernel driver"), language("none")


def _facts(device: Mapping[str, Any], language: Language) -> Iterator[tuple[str, str]]:
    """The facts that the driver reports about one GPU."""
    traits = device.get("traits") or {}
    if device.get("memory_bytes") is not None:
        yield language("memory"), f"{number(device['memory_bytes'] / GIB)} GiB"
    if traits.get("power_limit_w") is not None:
        yield language("power limit"), f"{number(traits['power_limit_w'])} W"
    if traits.get("ecc_enabled") is not None:
        yield "ECC", language("on") if traits["ecc_enabled"] else language("off")
    links = device.get("links") or ()
    if links:
        active = sum(bool(link["active"]) for link in links)
        yield "NVLink", language("{active} of {all} active", active=active, all=len(links))
    for key, label in (("serial", language("serial number")), ("uuid", "UUID"), ("vbios", "VBIOS")):
        if device.get(key) is not None:
            yield label, device[key]
