"""NVIDIA's functions on the PCI bus, and the links they hang on. No driver is needed to see them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from acceptance.observe import slot_name, sysfs
from acceptance.observe.sysfs import ODD, SysfsError

NVIDIA = 0x10DE
# Class codes of the PCI Code and ID Assignment Specification: VGA controller, 3D controller.
_DISPLAY = ("0300", "0302")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s(?: PCIe)?")
# Widths that PCI Express knows; a card that does not answer reads as 63, a link whose width is not known as 0 or 255.
_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})
_NO_WIDTH = frozenset({0, 63, 255})


@dataclass(frozen=True, slots=True)
class PciFunction:
    """One function of a card. What the kernel does not give is None.

    `address` is "0000:01:00.0", `device_id` "10de:2684", `class_code` "030000". `answers` is False when the configuration space reads
    as all ones (lspci's `rev ff`): the card has fallen off the bus; None when it could not be read. Speeds are gigatransfers a second
    of one lane, widths lanes; `slot_max_*` is what the port above the card can do. `is_virtual_function` marks a part that SR-IOV cut
    out of another function. `slot` is the slot's name, as root reads it in the firmware's tables, else the kernel's.
    """

    address: str
    device_id: str
    class_code: str
    is_display: bool
    is_virtual_function: bool
    driver: str | None
    answers: bool | None
    revision: str | None
    link_speed_gts: float | None
    link_width: int | None
    max_link_speed_gts: float | None
    max_link_width: int | None
    slot_max_link_speed_gts: float | None
    slot_max_link_width: int | None
    numa_node: int | None
    slot: str | None = None


def read(root: Path = Path("/")) -> tuple[PciFunction, ...]:
    """Every NVIDIA function, in address order. Raises SysfsError for a file that holds something unknown."""
    slots = slot_name.read(root)
    found = [
        _function(device, slots)
        for device in sysfs.entries(root / "sys/bus/pci/devices")
        if sysfs.number(device / "vendor") == NVIDIA
    ]
    return tuple(sorted(found, key=lambda function: order(function.address)))


def order(address: str) -> tuple[int, ...]:
    """A key that sorts addresses as the bus does, domains of more than four digits too."""
    return tuple(int(part, 16) for part in re.split(r"[:.]", address))


def _function(device: Path, slots: dict[str, str]) -> PciFunction:
    class_code = f"{_needed(device / 'class'):06x}"
    revision = sysfs.number(device / "revision")
    node = sysfs.number(device / "numa_node")
    slot = device.resolve().parent  # the bridge above; a root complex has no link files
    return PciFunction(
        address=device.name,
        device_id=f"{NVIDIA:04x}:{_needed(device / 'device'):04x}",
        class_code=class_code,
        is_display=class_code.startswith(_DISPLAY),
        is_virtual_function=(device / "physfn").exists(),
        driver=sysfs.target(device / "driver"),
        answers=_answers(sysfs.content(device / "config"), revision),
        revision=None if revision is None else f"{revision:02x}",
        link_speed_gts=speed(device / "current_link_speed"),
        link_width=width(device / "current_link_width"),
        max_link_speed_gts=speed(device / "max_link_speed"),
        max_link_width=width(device / "max_link_width"),
        slot_max_link_speed_gts=speed(slot / "max_link_speed"),
        slot_max_link_width=width(slot / "max_link_width"),
        numa_node=None if node == -1 else node,
        slot=slot_name.of(device.name, slot.name, slots),
    )


def _needed(path: Path) -> int:
    value = sysfs.number(path)
    if value is None:
        raise SysfsError(f"{path} cannot be read: mount /sys")
    return value


def _answers(config: bytes | None, revision: int | None) -> bool | None:
    # `config` is read from the card now; the other files are what the kernel saw when it found the card.
    if revision == 0xFF or (config is not None and set(config) == {0xFF}):
        return False
    return None if config is None else True


def speed(path: Path) -> float | None:
    """A link's speed in GT/s of one lane; None where it is not told. Raises SysfsError for what is no speed."""
    value = sysfs.text(path)
    if value is None or value.startswith("Unknown"):
        return None
    match = _SPEED.fullmatch(value)
    if match is None:
        raise SysfsError(f"{path} holds {value[:80]!r}, which is not a link speed: {ODD}")
    return float(match[1])


def width(path: Path) -> int | None:
    """A link's lanes; None where they are not told. Raises SysfsError for what is no width."""
    value = sysfs.text(path)
    if value is None or value == "Unknown":
        return None
    lanes = int(value.removeprefix("x")) if re.fullmatch(r"x?\d+", value) else None
    if lanes in _NO_WIDTH:
        return None
    if lanes not in _WIDTHS:
        raise SysfsError(f"{path} holds {value[:80]!r}, which is not a link width: {ODD}")
    return lanes
