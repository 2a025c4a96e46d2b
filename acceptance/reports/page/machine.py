"""The machine as observed: its parts in rows, and a card for every GPU. Pure.

What was not captured is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acceptance.core.language import Language
from acceptance.core.limit import GIB, number
from acceptance.core.message import Text
from acceptance.machine import pcie
from acceptance.machine.gpu import Gpu, gpus
from acceptance.machine.inventory import Cpu, Disk, Inventory, Memory, NetworkLink, NvmlDevice
from acceptance.machine.observation import NOTHING
from acceptance.wording import words as wording


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
    _ = language
    yield from _board(inventory, _)
    for label, text in (
        (_("processor"), processor(inventory, _)),
        (_("memory"), memory(inventory)),
    ):
        if text:
            yield label, text
    yield from _modules(inventory.memory, _)
    yield from ((_("disk {name}", name=one.name), disk(one, _)) for one in inventory.disks or ())
    yield from _network(inventory, _)


def processor(inventory: Inventory, language: Language) -> str | None:
    """The processors' model and counts; None where nothing is known of the machine."""
    if inventory == NOTHING:
        return None
    model = inventory.cpu.model or language("model not shown")
    return _joined(language, model, *_counts(inventory.cpu, language))


def memory(inventory: Inventory) -> str | None:
    """The size of the RAM; None where it is not known."""
    size = inventory.memory.total_bytes
    return f"{number(size / GIB)} GiB" if size is not None else None


def disk(one: Disk, language: Language) -> str:
    """A disk's model, size and kind."""
    size = None
    if one.size_bytes is not None:
        large = one.size_bytes >= 1e9
        size = f"{one.size_bytes / (1e9 if large else 1e6):.0f} {'GB' if large else 'MB'}"
    kind = language("virtual") if one.kind == "virtual" else one.kind
    return _joined(language, one.model or language("model not shown"), size, kind)


def fittings(inventory: Inventory, language: Language) -> Iterator[tuple[str, str]]:
    """What the page's top has no line for: board, software, memory modules, network."""
    yield from _board(inventory, language)
    yield from _modules(inventory.memory, language)
    yield from _network(inventory, language)


def _board(inventory: Inventory, _: Language) -> Iterator[tuple[str, str]]:
    board = inventory.board
    for label, text in (
        (_("board"), _joined(_, board.vendor, board.name)),
        (_("system"), _joined(_, board.os, board.kernel)),
        (_("BIOS"), board.bios_version),
        (_("NVIDIA driver"), board.nvidia_driver),
    ):
        if text:
            yield label, text


def _network(inventory: Inventory, _: Language) -> Iterator[tuple[str, str]]:
    for link in inventory.links or ():
        speed = f"{link.speed_mbps} Mbit/s" if link.speed_mbps else None
        state = None if link.up is None else _("up") if link.up else _("down")
        yield (
            _("network {name}", name=link.name),
            _joined(
                _, state, speed, link.driver or _("no driver"), link.pci_address, _pcie(link, _)
            ),
        )


def _pcie(link: NetworkLink, _: Language) -> str | None:
    """The PCI Express link of a network card."""
    generation = pcie.generation(link.pcie_speed_gts)
    if generation is None or link.pcie_width is None:
        return None
    return _("PCIe generation {number} x{lanes}", number=generation, lanes=link.pcie_width)


def _joined(_: Language, *parts: str | None) -> str:
    return _(", ").join(part for part in parts if part)


def _counts(cpu: Cpu, _: Language) -> Iterator[str]:
    if cpu.sockets is not None:
        yield _.ngettext("{n} socket", "{n} sockets", cpu.sockets)
    if cpu.cores is not None:
        yield _.ngettext("{n} core", "{n} cores", cpu.cores)
    if cpu.threads is not None:
        yield _.ngettext("{n} thread", "{n} threads", cpu.threads)


def _modules(memory: Memory, _: Language) -> Iterator[tuple[str, str]]:
    """The memory modules; equal ones share a row."""
    alike: dict[str, list[str]] = {}
    for dimm in memory.dimms or ():
        words = (
            f"{number(dimm.size_bytes / GIB)} GiB"
            if dimm.size_bytes is not None
            else _("size unknown"),
            dimm.kind,
            _("at {rate} MT/s", rate=dimm.configured_mts)
            if dimm.configured_mts is not None
            else None,
            dimm.part_number,
        )
        alike.setdefault(" ".join(part for part in words if part), []).append(dimm.slot)
    for text, slots in alike.items():
        many = len(slots) > 1
        yield (
            _("{count} modules", count=len(slots)) if many else _("module"),
            _("{text}, each in {slots}", text=text, slots=_.listed(slots))
            if many
            else _(", ").join((text, slots[0])),
        )
    if memory.dimms_unread:
        reason = wording.text(memory.dimms_unread, _)
        yield _("modules"), _("not read: {reason}", reason=reason)


def gpu_cards(inventory: Inventory, language: Language) -> Iterator[GpuCard]:
    """The GPUs on the PCI bus in order, then those that only the driver knows."""
    due = gpus(inventory)
    for gpu in due:
        own = _facts(gpu.device, language) if gpu.device is not None else ()
        facts = (*_link(gpu, language), *own)
        yield GpuCard(str(gpu.name), gpu.model, facts, _trouble(gpu.error, language))
    placed = {gpu.pci_address for gpu in due}
    others = [device for device in inventory.nvml.devices if device.pci_address not in placed]
    # those without an address last
    for device in sorted(others, key=lambda device: not device.pci_address):
        name = "NVML" if device.index is None else f"NVML {device.index}"
        facts = tuple(_facts(device, language))
        yield GpuCard(name, device.name, facts, _trouble(device.error, language))


def _trouble(error: Text | None, language: Language) -> str | None:
    return None if error is None else wording.text(error, language)


def _link(gpu: Gpu, language: Language) -> Iterator[tuple[str, str]]:
    yield language("PCI address"), gpu.pci_address
    if gpu.function.slot:
        yield language("slot"), gpu.function.slot
    width = gpu.traits.max_link_width_here if gpu.traits else None
    generation = gpu.traits.max_link_gen_here if gpu.traits else None
    if width is not None and generation is not None:
        yield (
            language("PCIe link"),
            language("generation {generation}, x{width}", generation=generation, width=width),
        )
    if not gpu.function.driver:
        yield language("kernel driver"), language("none")


def _facts(device: NvmlDevice, language: Language) -> Iterator[tuple[str, str]]:
    """The facts that the driver reports about one GPU."""
    if device.memory_bytes is not None:
        yield language.pgettext("gpu", "memory"), f"{number(device.memory_bytes / GIB)} GiB"
    if (traits := device.traits) is not None:
        if traits.power_limit_w is not None:
            yield language("power limit"), f"{number(traits.power_limit_w)} W"
        if traits.ecc_enabled is not None:
            yield "ECC", language("on") if traits.ecc_enabled else language("off")
    if links := device.links:
        active = sum(bool(link.active) for link in links)
        yield "NVLink", language("{active} of {all} active", active=active, all=len(links))
    for label, text in (
        (language("serial number"), device.serial),
        ("UUID", device.uuid),
        ("VBIOS", device.vbios),
    ):
        if text is not None:
            yield label, text
