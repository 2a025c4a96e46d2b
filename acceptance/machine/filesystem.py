"""A filesystem as types: where it is mounted, of what kind it is, and the disks under it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filesystem:
    """The filesystem that a path is on.

    `device` is the kernel's number of its block device ("8:1"), None where it has none of its own
    (btrfs, tmpfs, NFS); `block` that device's name ("nvme0n1p2", "dm-0", "md0"). `disks` are the
    whole disks under it, and `layers` what lies between, from the filesystem down: "lvm", "crypt",
    "multipath", "raid1", "loop". Both are empty where the kernel does not show them (ZFS).
    `free_bytes` is what a user other than root can still write.
    """

    mount: str
    kind: str
    source: str
    read_only: bool
    device: str | None
    block: str | None
    free_bytes: int
    size_bytes: int
    disks: tuple[str, ...]
    layers: tuple[str, ...]
