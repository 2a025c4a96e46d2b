"""NVIDIA's functions on the PCI bus, their links, and places in the tree.

They are visible without a driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from acceptance.core.message import english
from acceptance.machine.inventory import PciFunction, PciPlace
from acceptance.observe import sysfs

# SMBIOS reference specification (DSP0134), structure 9, System Slots, since version 2.6.
_DESIGNATION, _SEGMENT, _BUS, _FUNCTION, _LEAST = 0x04, 0x0D, 0x0F, 0x10, 0x11
_NONE = 0xFF
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")


def read_slots(root: Path) -> dict[str, str]:
    """Names of slots by address: of the card in the slot, or of the port above it.

    The kernel's addresses have no function. The firmware's tables (/sys/firmware/dmi, root only)
    take precedence over the kernel's slot names, which are often bare numbers.
    """
    slots = root / "sys/bus/pci/slots"
    named = {
        address: slot.name
        for slot in sysfs.entries(slots)
        if (address := sysfs.text(slot / "address"))
    }
    for entry in sysfs.entries(root / "sys/firmware/dmi/entries"):
        if (
            entry.name.startswith("9-")
            and (raw := sysfs.content(entry / "raw"))
            and (found := parse_slots(raw))
        ):
            named[found[0]] = found[1]
    return named


def parse_slots(raw: bytes) -> tuple[str, str] | None:
    """Address and name of one slot from its SMBIOS structure, or None.

    None if the structure is truncated or lacks the name or the address.
    """
    if len(raw) < _LEAST or raw[0] != 9 or not _LEAST <= raw[1] <= len(raw):
        return None
    strings = raw[raw[1] :].split(b"\0")
    number = raw[_DESIGNATION]
    name = (
        strings[number - 1].decode("ascii", errors="replace").strip()
        if 0 < number <= len(strings)
        else ""
    )
    bus, function = raw[_BUS], raw[_FUNCTION]
    if not name or (bus, function) == (_NONE, _NONE):
        return None
    segment = int.from_bytes(raw[_SEGMENT : _SEGMENT + 2], "little")
    return f"{segment:04x}:{bus:02x}:{function >> 3:02x}.{function & 7}", name


def slot_of(address: str, port: str, named: dict[str, str]) -> str | None:
    """The name of the slot of a card, by the card's address or the port above it; or None."""
    device, bus = address.rpartition(".")[0], address.rpartition(":")[0]
    return next(
        (named[key] for key in (f"{device}.0", address, port, device, bus) if key in named), None
    )


NVIDIA = 0x10DE
# Class codes of the PCI Code and ID Assignment Specification: VGA controller, 3D controller.
_DISPLAY = ("0300", "0302")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s(?: PCIe)?|Unknown.*", re.DOTALL)
# Widths in PCI Express. A card that does not answer reads as 63, a link of unknown width as 0 or
# 255.
_WIDTHS = frozenset({1, 2, 4, 8, 12, 16, 32})
_NO_WIDTH = frozenset({0, 63, 255})


def read(root: Path = Path("/")) -> tuple[PciFunction, ...]:
    """Every NVIDIA function, in address order.

    Raises SysfsError for a file with an unknown value.
    """
    slots = read_slots(root)
    found = [
        _function(device, slots)
        for device in sysfs.entries(root / "sys/bus/pci/devices")
        if sysfs.number(device / "vendor") == NVIDIA
    ]
    return tuple(sorted(found, key=lambda function: order(function.address)))


def order(address: str) -> tuple[int, ...]:
    """A key that sorts addresses in bus order, including domains of more than four digits."""
    return tuple(int(part, 16) for part in re.split(r"[:.]", address))


def _function(device: Path, slots: dict[str, str]) -> PciFunction:
    class_code = f"{sysfs.needed(sysfs.number, device / 'class'):06x}"
    revision = sysfs.number(device / "revision")
    node = sysfs.number(device / "numa_node")
    slot = device.resolve().parent  # the bridge above; a root complex has no link files
    return PciFunction(
        address=device.name,
        device_id=f"{NVIDIA:04x}:{sysfs.needed(sysfs.number, device / 'device'):04x}",
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
        slot=slot_of(device.name, slot.name, slots),
    )


def answers(address: str, root: Path = Path("/")) -> bool | None:
    """Whether the function at this address answers now; None where that cannot be read.

    Raises SysfsError for an unknown value.
    """
    device = root / "sys/bus/pci/devices" / address
    return _answers(sysfs.content(device / "config"), sysfs.number(device / "revision"))


def _answers(config: bytes | None, revision: int | None) -> bool | None:
    # `config` is read from the card now; the other files hold what the kernel read when it found
    # the card.
    if revision == 0xFF or (config is not None and set(config) == {0xFF}):
        return False
    return None if config is None else True


def speed(path: Path) -> float | None:
    """Speed of a link in GT/s per lane; None if unknown.

    Raises SysfsError for a value that is no speed.
    """
    match = sysfs.matched(
        english(
            "no_link_speed_in_file",
            "{path} holds {value}, which is not a link speed: the driver, the kernel or rigproof "
            "is at fault: please report it",
        ),
        path,
        _SPEED,
    )
    return float(match[1]) if match and match[1] else None


def width(path: Path) -> int | None:
    """Lanes of a link; None if unknown. Raises SysfsError for a value that is no width."""
    value = sysfs.text(path)
    if value is None or value == "Unknown":
        return None
    lanes = int(value.removeprefix("x")) if re.fullmatch(r"x?\d+", value) else None
    if lanes in _NO_WIDTH:
        return None
    if lanes not in _WIDTHS:
        raise sysfs.unexpected(
            english(
                "no_link_width_in_file",
                "{path} holds {value}, which is not a link width: the driver, the kernel or "
                "rigproof is at fault: please report it",
            ),
            path,
            value,
        )
    return lanes


def places(root: Path, addresses: Iterable[str]) -> dict[str, PciPlace]:
    """The places of these functions, by address.

    A function that sysfs does not show below a host bridge is absent. Raises SysfsError for a file
    with an unknown value.
    """
    found = {}
    for address in addresses:
        device = root / "sys/bus/pci/devices" / address
        parts = device.resolve().parts if device.exists() else ()
        hosts = [part for part in parts if _HOST_BRIDGE.fullmatch(part)]
        if hosts:
            below = parts[parts.index(hosts[-1]) + 1 :]
            bridges = tuple(part for part in below if _ADDRESS.fullmatch(part) and part != address)
            node = sysfs.number(device / "numa_node")
            cpus = sysfs.cpus(device / "local_cpulist")
            found[address] = PciPlace(
                address, hosts[-1], bridges, None if node == -1 else node, cpus
            )
    return found
