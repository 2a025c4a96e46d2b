"""Where the storage tests may write, and how much: rules on filesystems, pure.

A file on RAM, on an overlay or on another machine's disks says nothing of the disks of this one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from acceptance.core.limit import GIB, MIB
from acceptance.core.message import Message, Values, english
from acceptance.core.parts import Component, part
from acceptance.core.regular_file import size
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.machine_file import DeclaredScratch

# Left free of every filesystem, whichever is more: what the issue of these tests asks for, so that
# no test ever fills a disk that others write to.
FREE_BYTES = 10 * GIB
FREE_SHARE = 0.05
# The most that an accepting run writes, over all filesystems: of a drive of 1 TB that may be
# written whole 300 times (the least that makers of consumer drives warrant) 3 parts in 100 000.
ACCEPT_BYTES = 8 * GIB
# The sealed file that stays until the next accepting run.
KEPT_BYTES = GIB
FULL_CACHE_LEAST_BYTES = 4 * GIB  # below, nothing of a drive's fast cache is seen

# Filesystems of the kernel that keep files on block devices or pools of this machine.
LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs"})
_RAM = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs"})
_OVERLAY = frozenset({"overlay", "aufs", "fuse.fuse-overlayfs"})
_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "glusterfs",
        "lustre",
        "beegfs",
        "gpfs",
        "9p",
        "virtiofs",
        "afs",
        "ocfs2",
        "gfs2",
        "orangefs",
        "wekafs",
    }
)
_IMAGES = frozenset({"squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs"})
# What a machine file names in `allow`, by the class of kinds that it allows.
_CLASSES = (("tmpfs", _RAM), ("overlay", _OVERLAY), ("network", _NETWORK))


# Our own folder in the user's one, and in it the folder of what is kept for the nights.
HOME = ".rigproof"
KEPT = "kept"
SEALED = "sealed"  # the file in it
RUN_PREFIX = "run-"


def home(path: str) -> str:
    """Our own folder in a folder of the user, the same inside the container."""
    return posixpath.join(path, HOME)


def run_folder(path: str, run_id: str) -> str:
    """The folder that one run has made in it for its files, and removes at its end."""
    return posixpath.join(home(path), RUN_PREFIX + run_id)


def kept_folder(path: str) -> str:
    """The folder for the file that an accepting run keeps; whoever keeps one makes it."""
    return posixpath.join(home(path), KEPT)


def sealed_file(path: str) -> str:
    """The file that an accepting run keeps."""
    return posixpath.join(kept_folder(path), SEALED)


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes that a run writes on one filesystem: for its tests, and for the file that it keeps."""

    test_bytes: int
    kept_bytes: int

    @property
    def all_bytes(self) -> int:
        """All that the run writes there."""
        return self.test_bytes + self.kept_bytes


def class_of(kind: str) -> str | None:
    """The word of `allow` for a kind of filesystem that is no local disk's; None for any other.

    What a program serves (`fuse.sshfs`) may come from anywhere; `fuseblk` is a local device.
    """
    for name, kinds in _CLASSES:
        if kind in kinds:
            return name
    return "network" if kind.startswith("fuse.") or kind == "fuse" else None


def suitable(
    filesystem: Filesystem, allow: Collection[str], need_bytes: int, path: str
) -> Message | None:
    """Why nothing can be tested on a filesystem; None where it is suitable.

    `need_bytes` are still to be written. `allow` has the words of the machine file; the name of a
    kind itself allows that kind.
    """
    about: Values = {"path": path, "kind": filesystem.kind, "mount": filesystem.mount}
    if filesystem.kind in _IMAGES or filesystem.read_only:
        return Message(
            english(
                "scratch_read_only",
                "{path} is on a read-only filesystem ({kind} on {mount}): name a folder on "
                "another one as path of a scratch table in the machine file, or mount it for "
                "writing",
            ),
            about,
        )
    if filesystem.kind not in allow:
        of_class = class_of(filesystem.kind)
        if of_class is None and any(layer in (*_RAM, "ram") for layer in filesystem.layers):
            of_class = "tmpfs"  # a disk that lies in RAM itself
        if of_class is None and filesystem.kind not in LOCAL:
            return Message(
                english(
                    "scratch_kind_unknown",
                    "{path} is on {kind} (mounted on {mount}), which rigproof does not know as a "
                    "local disk's filesystem: name a folder on ext4, XFS or btrfs as path of a "
                    "scratch table in the machine file, or add the kind to its allow",
                ),
                about,
            )
        if of_class is not None and of_class not in allow:
            return Message(
                english(
                    "scratch_not_local",
                    "{path} is on {kind} (mounted on {mount}), which is no disk of this machine: "
                    "name a folder on one as path of a scratch table in the machine file, or add "
                    "{word} to its allow",
                ),
                {**about, "word": repr(of_class)},
            )
    spare = max(FREE_BYTES, int(FREE_SHARE * filesystem.size_bytes))
    if need_bytes and filesystem.free_bytes - need_bytes < spare:
        return Message(
            english(
                "scratch_too_small",
                "{path} has {free} free and {need} are to be written, but {spare} must stay free "
                "on {mount}: make room there, or name another folder as path of a scratch table "
                "in the machine file",
            ),
            {
                **about,
                "free": size(filesystem.free_bytes),
                "need": size(need_bytes),
                "spare": size(spare),
            },
        )
    return None


def _share(filesystems: int) -> int:
    """What an accepting run writes on each of so many filesystems."""
    return ACCEPT_BYTES // filesystems // MIB * MIB


def keeps(filesystems: int) -> bool:
    """Whether an accepting run keeps a file on each of so many filesystems."""
    return bool(filesystems) and _share(filesystems) >= 3 * KEPT_BYTES


def own_bytes(profile: str, filesystems: int) -> int:
    """What this profile writes on each of so many filesystems, whatever the machine file allows."""
    return _share(filesystems) if profile in ("accept", "soak") and filesystems else 0


def budgets(profile: str, declared: Sequence[DeclaredScratch]) -> tuple[Budget, ...]:
    """What a run of this profile writes on each of these filesystems.

    `accept` and `soak` share ACCEPT_BYTES out equally, the kept files included; a share below three
    kept files keeps none. `soak` writes what the machine file allows it to. Other profiles write
    nothing.
    """
    share = own_bytes(profile, len(declared))
    if not share:
        return tuple(Budget(0, 0) for _ in declared)
    found = []
    for one in declared:
        whole = one.write_gib * GIB if profile == "soak" and one.write_gib else share
        kept = KEPT_BYTES if profile == "accept" and one.keep and keeps(len(declared)) else 0
        found.append(Budget(whole - kept, kept))
    return tuple(found)


def full_cache_bytes(test_bytes: int) -> int:
    """How much of what the tests may write fills the drive's fast cache; 0 where it is too little.

    The other tests write no more than in `accept`: what the machine file allows beyond is for this.
    """
    rest = test_bytes - ACCEPT_BYTES
    return rest if rest >= FULL_CACHE_LEAST_BYTES else 0


def component(disks: Sequence[str], block: str | None, kind: str) -> Component:
    """What the numbers of a filesystem belong to.

    The disk under it where it is one; else the device that joins several (`disk:md0`), or the kind
    of a filesystem without one (`disk:zfs`).
    """
    return part("disk", disks[0] if len(disks) == 1 else block or kind)
