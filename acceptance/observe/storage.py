"""The disks, from sysfs; their health, from smartctl.

The links of disks, from sysfs: PCI Express of NVMe disks, and SATA.

A disk's own thermometer, as the kernel shows it (hwmon): of NVMe drives the composite
temperature, of SATA drives where the module drivetemp is loaded.

Linux, drivers/nvme/host/hwmon.c and drivers/hwmon/drivetemp.c: `temp1_input`, and where the drive
states them `temp1_max` (NVMe: its warning temperature) and `temp1_crit` (its critical one), in
thousandths of a degree Celsius.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from acceptance.core.message import Unmeasured, english
from acceptance.core.parts import Component
from acceptance.machine import disk_link
from acceptance.machine.disk_link import PcieLink, SataLink
from acceptance.machine.inventory import Disk
from acceptance.machine.thresholds import thresholds
from acceptance.observe import pci, self_test, smart, sysfs
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline

_FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SATA_SPEED = re.compile(r"(\d+(?:\.\d+)?) Gbps|<unknown>")
# ACS, IDENTIFY DEVICE word 76: bits 1 to 3 say which generations of SATA the disk has.
_CAPABILITIES = 76
_GENERATIONS = ((1 << 3, 6.0), (1 << 2, 3.0), (1 << 1, 1.5))


def read_link(disk: Disk, root: Path = Path("/")) -> PcieLink | SataLink | None:
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
    match = sysfs.matched(
        english(
            "no_sata_speed_in_file",
            "{path} holds {value}, which is no speed of a SATA link: the kernel or rigproof is at "
            "fault: please report it",
        ),
        path,
        _SATA_SPEED,
    )
    return float(match[1]) if match and match[1] else None


def _most(path: Path) -> float | None:
    """The disk's fastest generation, from its IDENTIFY DEVICE data; None where it tells none."""
    value = sysfs.text(path)
    if value is None:
        return None
    words = value.split()
    if len(words) <= _CAPABILITIES or not re.fullmatch(r"[0-9a-f]{4}", words[_CAPABILITIES]):
        raise sysfs.unexpected(
            english(
                "no_identity_in_file",
                "{path} holds {value}, which is no IDENTIFY DEVICE data of a disk: the kernel or "
                "rigproof is at fault: please report it",
            ),
            path,
            value,
        )
    bits = int(words[_CAPABILITIES], 16)
    # ACS: 0 and FFFFh say that the word holds nothing
    return next((gbps for bit, gbps in _GENERATIONS if bits & bit and bits != 0xFFFF), None)


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
        link = read_link(disk, root)
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
    return _ask(smart.argv, disk, deadline, run, find)


def start_self_test(
    disk: Disk,
    *,
    deadline: Deadline,
    run: Callable[..., ProgramResult] = command.run,
    find: Callable[[str, str], str] | None = None,
) -> ProgramResult:
    """Ask a disk to begin its short self-test. Raises as `report` does."""
    return _ask(self_test.start_argv, disk, deadline, run, find)


def _ask(
    argv: Callable[[str, str], tuple[str, ...]],
    disk: Disk,
    deadline: Deadline,
    run: Callable[..., ProgramResult],
    find: Callable[[str, str], str] | None,
) -> ProgramResult:
    program = (find or command.find)(smart.PROGRAM, smart.PACKAGE)
    done = run(argv(f"/dev/{disk.name}", program), deadline=deadline.sooner(SMARTCTL_S))
    if done.timed_out:
        raise smart.SmartInterrupted(
            english(
                "disk_silent",
                "{disk} did not answer: smartctl {how}; look at the kernel log for the disk",
            ),
            disk=str(disk.component),
            how=done.describe(),
        )
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


@dataclass(frozen=True, slots=True)
class Thermometer:
    """Where the temperature of a disk stands, and the drive's own thresholds, None where none."""

    input: Path
    warning_c: float | None
    critical_c: float | None

    @property
    def limit_c(self) -> float | None:
        """The temperature above which the drive itself warns, else its critical one."""
        return self.critical_c if self.warning_c is None else self.warning_c

    def now(self) -> float | None:
        """The temperature at this moment; None where the drive does not answer with one."""
        value = _celsius(self.input)
        low, high = thresholds().range.disk_c.between
        return value if value is not None and low < value < high else None


def find_thermometer(name: str, root: Path = Path("/")) -> Thermometer | None:
    """The thermometer of a disk by its name; None for a disk without one."""
    device = root / "sys/class/block" / name / "device"
    # A multipath NVMe disk is below its subsystem, which lists its controllers.
    controllers = [one for one in sysfs.entries(device) if re.fullmatch(r"nvme\d+", one.name)]
    for place in (device, *controllers):
        # Before Linux 5.16 the device of an NVMe controller has it, not the controller.
        for folder in (place, place / "device"):
            for hwmon in (*sysfs.entries(folder), *sysfs.entries(folder / "hwmon")):
                found = hwmon / "temp1_input"
                if re.fullmatch(r"hwmon\d+", hwmon.name) and found.exists():
                    return Thermometer(
                        found, _threshold(hwmon / "temp1_max"), _threshold(hwmon / "temp1_crit")
                    )
    return None


def limited(disks: Iterable[Disk], root: Path = Path("/")) -> frozenset[Component]:
    """The disks that show their temperature, and a threshold of their own for it."""
    found = ((disk.component, find_thermometer(disk.name, root)) for disk in disks)
    return frozenset(name for name, one in found if one is not None and one.limit_c is not None)


def _celsius(path: Path) -> float | None:
    value = sysfs.number(path)
    return None if value is None else value / 1000


def _threshold(path: Path) -> float | None:
    value = _celsius(path)
    _, high = thresholds().range.disk_c.between
    return value if value is not None and 0.0 < value < high else None
