"""Parts under test, by the names that kernel messages give them: of a machine, or in a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acceptance.observe.event import PartKind, pci_function
from acceptance.observe.kernel_line import KernelLine

_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SATA_PORT = re.compile(r"ata\d+")
_ADDRESS = r"(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
# NVIDIA's functions of class 3 (display); its other functions are bridges, audio, USB.
_SHOWN_GPU = re.compile(
    rf"^(?:pci {_ADDRESS}: \[10de:[0-9a-f]{{4}}\] type 00 class 0x03"
    rf"|nvidia {_ADDRESS.replace('pci', 'bound')}: "
    r"|NVRM: GPU (?:at PCI:|at |)(?P<named>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?)\b)"
)
_SHOWN_BRIDGE = re.compile(
    rf"^pci(?:eport)? {_ADDRESS}: PCI bridge to \[bus (?P<first>[0-9a-f]{{2}})"
    r"(?:-(?P<last>[0-9a-f]{2}))?\]"
)
_SHOWN_DISK = re.compile(
    rf"^(?:(?P<port>ata\d+)\.\d+: ATA-\d+: |nvme (?:nvme\d+: pci function )?{_ADDRESS})"
)


def read(root: Path, gpus: Iterable[str], disks: Iterable[str]) -> dict[str, PartKind]:
    """The parts under test of a machine: these GPUs, these disks, and all its network cards.

    With each come its PCI function, the bridges above it and, for a disk, its SATA port.
    """
    found: dict[str, PartKind] = {}
    for name in gpus:
        _add(found, "gpu", root / "sys/bus/pci/devices" / name)
    for name in disks:
        found[name] = "disk"
        block = root / "sys/block" / name
        # An NVMe disk with several ways is below its subsystem, which lists its controllers.
        for device in (block, *block.glob("device/nvme[0-9]*")):
            _add(found, "disk", device)
    for card in sorted((root / "sys/class/net").glob("*/device")):
        _add(found, "network", card)
    return found


def _add(found: dict[str, PartKind], kind: PartKind, device: Path) -> None:
    parts = device.resolve().parts
    functions = [part for part in parts if _FUNCTION.fullmatch(part)]
    for bridge in functions[:-1]:
        found.setdefault(bridge, "bridge")
    names = [*functions[-1:], *(part for part in parts if _SATA_PORT.fullmatch(part))]
    found.update(dict.fromkeys(names, kind))


def shown(lines: Sequence[KernelLine]) -> Mapping[str, PartKind]:
    """The NVIDIA GPUs, the SATA and NVMe disks that a log itself shows, and the bridges above."""
    found: dict[str, PartKind] = {}
    bridges: list[tuple[str, str, range]] = []
    for line in lines:
        if line.foreign:
            continue
        if match := _SHOWN_GPU.match(line.text):
            found[str(pci_function(match["pci"] or match["bound"] or match["named"]))] = "gpu"
        elif match := _SHOWN_BRIDGE.match(line.text):
            first = int(match["first"], 16)
            buses = range(first, int(match["last"] or match["first"], 16) + 1)
            bridges.append((match["pci"], match["pci"].partition(":")[0], buses))
        elif match := _SHOWN_DISK.match(line.text):
            found[match["port"] or match["pci"]] = "disk"
    addresses = [part.split(":") for part in found if ":" in part]
    below = {(address[0], int(address[1], 16)) for address in addresses}
    for bridge, domain, buses in bridges:
        if any((domain, bus) in below for bus in buses):
            found.setdefault(bridge, "bridge")
    return found
