"""The filesystem that a path is on, and the disks under it, from /proc and sysfs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from acceptance.core.message import english
from acceptance.core.plain_text import quote
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.scratch_place import LOCAL
from acceptance.observe import sysfs
from acceptance.observe.sysfs import SysfsError

# proc_pid_mountinfo(5): space, tab, line end and backslash in a name are written in octal.
_ESCAPE = re.compile(r"\\([0-7]{3})")
_DEVICE = re.compile(r"\d+:\d+")
# The prefixes of a mapping's UUID that its makers reserved (lvm2, cryptsetup, multipath-tools,
# dmraid); kpartx puts the number of a partition before them.
_MAPPINGS = {"LVM": "lvm", "CRYPT": "crypt", "mpath": "multipath", "DMRAID": "raid"}
_MAPPING = re.compile(r"(?:part\d+-)?([A-Za-z]+)-")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of /proc/self/mountinfo."""

    number: int
    parent: int
    device: str
    point: PurePosixPath
    kind: str
    source: str
    read_only: bool


def mounts(text: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo file, in its order. Raises SysfsError for any other line."""
    return tuple(_mount(line) for line in text.split("\n") if line)


def _mounted(root: Path) -> tuple[Mount, ...]:
    text = sysfs.content(root / "proc/self/mountinfo")
    if text is None:
        raise SysfsError(
            english(
                "mounts_unread",
                "{path} cannot be read, so the disks under a folder are not known: mount /proc",
            ),
            path=str(root / "proc/self/mountinfo"),
        )
    return mounts(text.decode("utf-8", errors="surrogateescape"))


def _mount(line: str) -> Mount:
    left, _, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if (
        len(before) < 6
        or len(after) != 3
        or not (before[0].isdecimal() and before[1].isdecimal())
        or not _DEVICE.fullmatch(before[2])
    ):
        raise SysfsError(
            english(
                "mount_line_unknown",
                "/proc/self/mountinfo has a line that is not understood: {line}",
            ),
            line=quote(line),
        )
    options = {*before[5].split(","), *after[2].split(",")}
    return Mount(
        number=int(before[0]),
        parent=int(before[1]),
        device=before[2],
        point=PurePosixPath(_plain(before[4])),
        kind=after[0],
        source=_plain(after[1]),
        read_only="ro" in options,
    )


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def holder(path: PurePosixPath, listed: Sequence[Mount]) -> Mount:
    """The mount that a path without symbolic links is on.

    Walks down as the kernel does, so that a mount that a later one hides is not taken; the last
    mount on a point wins. Raises SysfsError where none holds the path.
    """
    numbers = {one.number for one in listed}
    found: Mount | None = None
    for place in (*reversed(path.parents), path):
        while over := [
            one
            for one in listed
            if one.point == place
            and one is not found
            and (one.parent == found.number if found else _is_top(one, numbers))
        ]:
            found = over[-1]
    if found is None:
        raise SysfsError(
            english("path_on_no_mount", "no mount of /proc/self/mountinfo holds {path}"),
            path=str(path),
        )
    return found


def _is_top(mount: Mount, numbers: set[int]) -> bool:
    """Whether nothing lists the mount that this one is on: the root of what this process sees."""
    return mount.parent == mount.number or mount.parent not in numbers


def read(path: Path, root: Path = Path("/")) -> Filesystem:
    """The filesystem that an existing path is on, as this process sees it.

    /proc, /sys and /dev are those below `root`. Raises SysfsError where the kernel does not
    show it, OSError where the path is not there.
    """
    place = path.resolve(strict=True)
    listed = _mounted(root)
    mount = holder(PurePosixPath(place), listed)
    room = os.statvfs(place)
    block = _block(mount, root)
    disks, layers = _under(mount, block, listed, root) if block else ((), ())
    return Filesystem(
        mount=str(mount.point),
        kind=mount.kind,
        source=mount.source,
        read_only=mount.read_only or bool(room.f_flag & os.ST_RDONLY),
        device=None if mount.device.startswith("0:") else mount.device,
        block=block.name if block else None,
        free_bytes=room.f_bavail * room.f_frsize,
        size_bytes=room.f_blocks * room.f_frsize,
        disks=disks,
        layers=layers,
    )


def local(root: Path = Path("/")) -> dict[str, bool]:
    """The mounted local filesystems by their source ("/dev/sda2"), and whether each is writable.

    A filesystem is mounted at several places, and writable if it is at one of them. Images in files
    (loop devices) are left out. Raises SysfsError where the kernel does not show the mounts.
    """
    found: dict[str, bool] = {}
    for mount in _mounted(root):
        if mount.kind in LOCAL and not mount.source.startswith("/dev/loop"):
            found[mount.source] = found.get(mount.source, False) or not mount.read_only
    return found


def on_disks(root: Path = Path("/")) -> tuple[Filesystem, ...]:
    """The mounted filesystems that files of this machine's disks lie on, one for each disk.

    Of several of one disk the largest. What cannot be read is left out.
    """
    text = sysfs.content(root / "proc/self/mountinfo") or b""
    found: dict[tuple[str, ...], Filesystem] = {}
    with contextlib.suppress(SysfsError):
        for mount in mounts(text.decode("utf-8", errors="surrogateescape")):
            point = Path(mount.point)
            if mount.kind not in LOCAL or mount.read_only or not point.is_dir():
                continue
            with contextlib.suppress(SysfsError, OSError):
                one = read(point, root)
                known = found.get(one.disks)
                if one.disks and (known is None or known.size_bytes < one.size_bytes):
                    found[one.disks] = one
    return tuple(found.values())


def _block(mount: Mount, root: Path) -> Path | None:
    """The folder of the mount's block device in sysfs, None where it has none.

    A filesystem of several disks (btrfs) has a number of no device; its source is one of them.
    """
    if not mount.device.startswith("0:"):
        link = root / "sys/dev/block" / mount.device
        if not link.exists():
            raise SysfsError(
                english(
                    "device_not_in_sysfs",
                    "the block device {device} of {mount} is not in /sys/dev/block: mount /sys",
                ),
                device=mount.device,
                mount=str(mount.point),
            )
        return link.resolve()
    if not mount.source.startswith("/dev/"):
        return None
    node = (root / mount.source.lstrip("/")).resolve()  # /dev/mapper/x is a link to /dev/dm-0
    link = root / "sys/class/block" / node.name
    return link.resolve() if link.exists() else None


def _under(
    mount: Mount, block: Path, listed: Sequence[Mount], root: Path
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The whole disks under a mount, by name, and the layers between."""
    members = _btrfs_members(block, root) if mount.kind == "btrfs" else (block,)
    disks: list[str] = []
    layers: list[str] = ["btrfs"] if len(members) > 1 else []
    for member in members:
        _walk(member, listed, root, disks, layers)
    return tuple(sorted(set(disks))), tuple(dict.fromkeys(layers))


def _btrfs_members(block: Path, root: Path) -> tuple[Path, ...]:
    for one in sysfs.entries(root / "sys/fs/btrfs"):
        names = [entry.name for entry in sysfs.entries(one / "devices")]
        if block.name in names:
            return tuple((root / "sys/class/block" / name).resolve() for name in names)
    return (block,)


def _walk(
    block: Path, listed: Sequence[Mount], root: Path, disks: list[str], layers: list[str]
) -> None:
    if (block / "partition").exists():
        block = block.parent
    if layer := _layer(block):
        layers.append(layer)
    backing = sysfs.text(block / "loop/backing_file")
    if backing is not None:
        own = holder(PurePosixPath(backing), listed)
        below = _block(own, root)
        if below is None:
            layers.append(own.kind)
        else:
            _walk(below, listed, root, disks, layers)
        return
    slaves = sysfs.entries(block / "slaves")
    for slave in slaves:
        _walk(slave.resolve(), listed, root, disks, layers)
    if not slaves:
        disks.append(block.name)


def _layer(block: Path) -> str | None:
    """What a block device that is no disk adds: its level of RAID, or the kind of its mapping."""
    if (level := sysfs.text(block / "md/level")) is not None:
        return level
    if (block / "dm").exists():
        found = _MAPPING.match(sysfs.text(block / "dm/uuid") or "")
        return _MAPPINGS.get(found[1], found[1].lower()) if found else "dm"
    if (block / "loop").exists():
        return "loop"
    if (block / "bcache").exists():
        return "bcache"
    # RAM disks of the kernel: zram and brd
    return "ram" if re.fullmatch(r"z?ram\d+", block.name) else None
