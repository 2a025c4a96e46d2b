"""The links of disks, from sysfs: PCI Express of NVMe disks, and SATA."""

from __future__ import annotations

import re
from pathlib import Path

from acceptance.core.message import Unmeasured
from acceptance.machine.disk_link import PcieLink, SataLink
from acceptance.machine.inventory import Disk
from acceptance.observe import pci, sysfs

_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SATA_SPEED = re.compile(r"(\d+(?:\.\d+)?) Gbps|<unknown>")
# ACS, IDENTIFY DEVICE word 76: bits 1 to 3 say which generations of SATA the disk has.
_CAPABILITIES = 76
_GENERATIONS = ((1 << 3, 6.0), (1 << 2, 3.0), (1 << 1, 1.5))


def read(disk: Disk, root: Path = Path("/")) -> PcieLink | SataLink | None:
    """The link of a disk now; None for a disk with neither of these links.

    Of an NVMe disk with several ways the first is read. Raises SysfsError for an unknown value.
    """
    block = root / "sys/block" / disk.name
    if disk.transport == "nvme":
        function = _function(block)
        return None if function is None else _pcie(function)
    return _sata(block) if disk.transport == "sata" else None


def lack(disk: Disk, root: Path = Path("/")) -> Unmeasured:
    """Why the share of a disk's link is not known."""
    block = root / "sys/block" / disk.name
    if not block.exists():
        return Unmeasured.NO_ANSWER
    if disk.transport == "nvme":
        if (function := _function(block)) is None:
            return Unmeasured.NOT_OFFERED
        return sysfs.lack((function / "current_link_speed", function / "current_link_width"))
    state = _sata_state(block)
    return sysfs.lack(() if state is None else (state[1] / "sata_spd",))


def _function(block: Path) -> Path | None:
    """The PCI function of an NVMe disk's controller."""
    device = block / "device"
    # A multipath NVMe disk is below its subsystem, which lists its controllers.
    controllers = (
        device,
        *(entry for entry in sysfs.entries(device) if re.fullmatch(r"nvme\d+", entry.name)),
    )
    for controller in controllers:
        function = (controller / "device").resolve()
        if _FUNCTION.fullmatch(function.name):
            return function
    return None


def _pcie(function: Path) -> PcieLink:
    port = function.parent
    return PcieLink(
        address=function.name,
        speed_gts=pci.speed(function / "current_link_speed"),
        width=pci.width(function / "current_link_width"),
        max_speed_gts=pci.speed(function / "max_link_speed"),
        max_width=pci.width(function / "max_link_width"),
        slot_max_speed_gts=pci.speed(port / "max_link_speed"),
        slot_max_width=pci.width(port / "max_link_width"),
    )


def _sata(block: Path) -> SataLink | None:
    found = _sata_state(block)
    if found is None:
        return None
    link, state = found
    device = f"dev{link.name.removeprefix('link')}.0"
    return SataLink(
        speed_gbps=_gbps(state / "sata_spd"),
        max_gbps=_most(link / device / "ata_device" / device / "id"),
        port_max_gbps=_gbps(state / "hw_sata_spd_limit"),
    )


def _sata_state(block: Path) -> tuple[Path, Path] | None:
    """The link of a disk's port, and the folder with its state."""
    parents = block.resolve().parents
    port = next((one for one in parents if re.fullmatch(r"ata\d+", one.name)), None)
    if port is None:
        return None
    for link in sysfs.entries(port):
        state = link / "ata_link" / link.name
        if link.name.startswith("link") and state.is_dir():
            return link, state
    return None


def _gbps(path: Path) -> float | None:
    match = sysfs.matched("no_sata_speed_in_file", path, _SATA_SPEED)
    return float(match[1]) if match and match[1] else None


def _most(path: Path) -> float | None:
    """The disk's fastest generation, from its IDENTIFY DEVICE data; None where it tells none."""
    value = sysfs.text(path)
    if value is None:
        return None
    words = value.split()
    if len(words) <= _CAPABILITIES or not re.fullmatch(r"[0-9a-f]{4}", words[_CAPABILITIES]):
        raise sysfs.unexpected("no_identity_in_file", path, value)
    bits = int(words[_CAPABILITIES], 16)
    # ACS: 0 and FFFFh say that the word holds nothing
    return next((gbps for bit, gbps in _GENERATIONS if bits & bit and bits != 0xFFFF), None)
