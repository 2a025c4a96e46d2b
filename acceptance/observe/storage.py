"""The disks, from sysfs; their health, from smartctl."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acceptance.machine import disk_link
from acceptance.machine.inventory import Disk
from acceptance.observe import disk_links, self_test, smart, sysfs
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

SMARTCTL_S = 30.0
SECTOR_BYTES = 512  # the unit of /sys/block/*/size, whatever the disk's own sector size

# Block devices that are no disk: optical drives, floppies, firmware flash, boot areas of an eMMC.
_NO_DISK = re.compile(r"(?:sr|fd|mtdblock|mmcblk\d+(?:boot|rpmb))\d*")
_VIRTUAL_NAME = re.compile(r"(?:vd|xvd)[a-z]+")
# Model names of emulated disks of the usual hypervisors and clouds.
_VIRTUAL_MODEL = re.compile(
    r"QEMU|VMware|VBOX|Virtual Disk|Amazon Elastic Block Store|nvme_card|PersistentDisk",
    re.IGNORECASE,
)
_TRANSPORTS = (
    (re.compile(r"/usb\d"), "usb"),
    (re.compile(r"/ata\d"), "sata"),
    (re.compile(r"/end_device-"), "sas"),
    (re.compile(r"/virtio\d"), "virtio"),
    (re.compile(r"/VMBUS", re.IGNORECASE), "vmbus"),
    (re.compile(r"/mmc\d"), "mmc"),
    (re.compile(r"/vbd-"), "xen"),
)


def read(root: Path = Path("/")) -> tuple[Disk, ...]:
    """The disks of the machine, by name.

    Partitions, RAM disks, and loop, mapper or RAID devices are left out.
    """
    found = (_disk(block) for block in sysfs.entries(root / "sys/block") if _is_disk(block))
    return tuple(replace(disk, shows_link=_shows_link(disk, root)) for disk in found)


def _shows_link(disk: Disk, root: Path) -> bool | None:
    try:
        link = disk_links.read(disk, root)
    except sysfs.SysfsError:  # the check of links says what is wrong
        return None
    return link is not None and disk_link.share(link) is not None


def report(
    disk: Disk,
    *,
    deadline: Deadline,
    run: Callable[..., ProgramResult] = command.run,
    find: Callable[[str, str], str] | None = None,
) -> ProgramResult:
    """Ask a disk for its report with smartctl; needs root. `smart` and `self_test` parse it.

    Raises SmartInterrupted, or CommandError if smartctl is missing; each message has the reason and
    the fix.
    """
    program = (find or command.find)(smart.PROGRAM, smart.PACKAGE)
    return _ask(smart.argv(f"/dev/{disk.name}", program), disk, deadline, run)


def start_self_test(
    disk: Disk,
    *,
    deadline: Deadline,
    run: Callable[..., ProgramResult] = command.run,
    find: Callable[[str, str], str] | None = None,
) -> ProgramResult:
    """Ask a disk to begin its short self-test. Raises as `report` does."""
    program = (find or command.find)(smart.PROGRAM, smart.PACKAGE)
    return _ask(self_test.start_argv(f"/dev/{disk.name}", program), disk, deadline, run)


def _ask(
    argv: tuple[str, ...], disk: Disk, deadline: Deadline, run: Callable[..., ProgramResult]
) -> ProgramResult:
    done = run(argv, deadline=deadline.sooner(SMARTCTL_S))
    if done.timed_out:
        raise smart.SmartInterrupted("disk_silent", disk=str(disk.component), how=done.describe())
    return done


def _is_disk(block: Path) -> bool:
    if _NO_DISK.fullmatch(block.name) or not (block / "device").exists():
        return False
    # The paths of a multipath NVMe disk are marked hidden; the disk itself is listed beside them.
    return (sysfs.number(block / "size") or 0) > 0 and not sysfs.number(block / "hidden")


def _disk(block: Path) -> Disk:
    device = block / "device"
    ata = _ata_identity(device / "vpd_pg89")
    model = ata[0] or sysfs.text(device / "model")
    transport = _transport(block)
    return Disk(
        name=block.name,
        model=model,
        serial=ata[1]
        or sysfs.text(device / "serial")
        or sysfs.text(block / "serial")
        or _scsi_serial(device / "vpd_pg80"),
        size_bytes=(sysfs.number(block / "size") or 0) * SECTOR_BYTES,
        kind=_kind(block, model, transport),
        transport=transport,
        firmware=ata[2] or sysfs.text(device / "firmware_rev") or sysfs.text(device / "rev"),
    )


def _transport(block: Path) -> str | None:
    if block.name.startswith("nvme"):
        # A multipath NVMe disk is below its subsystem, which lists its controllers.
        controllers = (
            block / "device",
            *(entry for entry in sysfs.entries(block / "device") if entry.name.startswith("nvme")),
        )
        named = next(
            (name for controller in controllers if (name := sysfs.text(controller / "transport"))),
            None,
        )
        return "nvme" if named in (None, "pcie") else f"nvme-{named}"
    path = str(block.resolve())
    return next((name for pattern, name in _TRANSPORTS if pattern.search(path)), None)


def _kind(block: Path, model: str | None, transport: str | None) -> str | None:
    if (
        _VIRTUAL_NAME.fullmatch(block.name)
        or transport in ("virtio", "xen", "vmbus")
        or _VIRTUAL_MODEL.search(model or "")
    ):
        return "virtual"
    if block.name.startswith("nvme"):
        return "nvme"
    return (
        {0: "ssd", 1: "hdd"}.get(rotational)
        if (rotational := sysfs.number(block / "queue/rotational")) is not None
        else None
    )


def _ata_identity(page: Path) -> tuple[str | None, str | None, str | None]:
    """Model, serial and firmware of a SATA disk, or None for each.

    The SCSI fields beside this page cut the model at 16 characters.

    SAT (INCITS 431) puts the IDENTIFY DEVICE data at byte 60 of VPD page 89h; ACS defines the words
    and swaps the bytes of each.
    """
    data = sysfs.content(page)
    if data is None or len(data) < 60 + 94:  # the model ends with word 46
        return (None, None, None)
    words = data[60:]
    return _swapped(words[54:94]), _swapped(words[20:40]), _swapped(words[46:54])


def _swapped(data: bytes) -> str | None:
    swapped = b"".join(data[at + 1 : at + 2] + data[at : at + 1] for at in range(0, len(data), 2))
    return swapped.decode("ascii", errors="replace").strip("\0 ") or None


def _scsi_serial(page: Path) -> str | None:
    """The serial number of VPD page 80h: four bytes of header, then text."""
    data = sysfs.content(page)
    return data[4:].decode("ascii", errors="replace").strip("\0 ") or None if data else None
