"""The names of the board's slots, by PCI address: what is printed beside a slot, where the firmware's tables say it."""

from __future__ import annotations

from pathlib import Path

from acceptance.observe import sysfs

# SMBIOS reference specification (DSP0134), structure 9, System Slots, since version 2.6.
_DESIGNATION, _SEGMENT, _BUS, _FUNCTION, _LEAST = 0x04, 0x0D, 0x0F, 0x10, 0x11
_NONE = 0xFF


def read(root: Path) -> dict[str, str]:
    """Names of slots by address: of the card in it, or of the port above, as the firmware has it; without its function where it is so told.

    The firmware's tables (/sys/firmware/dmi, root only) go before what the kernel calls slots, which is often a bare number.
    """
    slots = root / "sys/bus/pci/slots"
    named = {address: slot.name for slot in sysfs.entries(slots) if (address := sysfs.text(slot / "address"))}
    for entry in sysfs.entries(root / "sys/firmware/dmi/entries"):
        if entry.name.startswith("9-") and (raw := sysfs.content(entry / "raw")) and (found := parse(raw)):
            named[found[0]] = found[1]
    return named


def parse(raw: bytes) -> tuple[str, str] | None:
    """Address and name of one slot from its structure; None where it has neither, or is cut short."""
    if len(raw) < _LEAST or raw[0] != 9 or not _LEAST <= raw[1] <= len(raw):
        return None
    strings = raw[raw[1] :].split(b"\0")
    number = raw[_DESIGNATION]
    name = strings[number - 1].decode("ascii", errors="replace").strip() if 0 < number <= len(strings) else ""
    bus, function = raw[_BUS], raw[_FUNCTION]
    if not name or (bus, function) == (_NONE, _NONE):
        return None
    segment = int.from_bytes(raw[_SEGMENT : _SEGMENT + 2], "little")
    return f"{segment:04x}:{bus:02x}:{function >> 3:02x}.{function & 7}", name


def of(address: str, port: str, named: dict[str, str]) -> str | None:
    """The name of the slot of a card at this address, below this port; None where nobody knows it."""
    device, bus = address.rpartition(".")[0], address.rpartition(":")[0]
    return next((named[key] for key in (f"{device}.0", address, port, device, bus) if key in named), None)
