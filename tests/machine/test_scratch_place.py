from __future__ import annotations

from dataclasses import replace

import pytest
from cases import each

from acceptance.core.limit import GIB, MIB
from acceptance.core.parts import Part
from acceptance.machine.filesystem import Filesystem
from acceptance.machine.machine_file import DeclaredScratch
from acceptance.machine.scratch_place import (
    ACCEPT_BYTES,
    KEPT_BYTES,
    Budget,
    budgets,
    component,
    full_cache_bytes,
    home,
    kept_folder,
    run_folder,
    sealed_file,
    suitable,
)
from acceptance.wording import words

DATA = Filesystem(
    mount="/data",
    kind="ext4",
    source="/dev/nvme0n1p1",
    read_only=False,
    device="259:1",
    block="nvme0n1p1",
    free_bytes=100 * GIB,
    size_bytes=200 * GIB,
    disks=("nvme0n1",),
    layers=(),
)


def refused(filesystem: Filesystem, *allow: str, need: int = 0) -> str | None:
    why = suitable(filesystem, allow, need, "/data")
    return None if why is None else words.message(why)


LOCAL = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs")
UNKNOWN = ("vfat", "exfat", "ntfs3", "fuseblk", "minix", "newfs", "")
IMAGES = ("squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs")
NOT_KNOWN = "does not know as a local disk's filesystem"
IN_RAM = (("ram",), ("loop", "tmpfs"), ("crypt", "ram"))


@each(
    "filesystem, allow, why",
    [
        *((replace(DATA, kind=kind), (), "") for kind in LOCAL),
        (replace(DATA, layers=("crypt", "lvm", "raid1")), (), ""),
        # unknown kinds are refused until they are allowed by name
        *((replace(DATA, kind=kind), (), NOT_KNOWN) for kind in UNKNOWN),
        *(
            (replace(DATA, kind=kind), ("tmpfs", "overlay", "network"), NOT_KNOWN)
            for kind in UNKNOWN
        ),
        *((replace(DATA, kind=kind), (kind,), "") for kind in UNKNOWN),
        # a disk in RAM is as good as tmpfs
        *((replace(DATA, layers=layers), (), "add 'tmpfs' to its allow") for layers in IN_RAM),
        *((replace(DATA, layers=layers), ("tmpfs",), "") for layers in IN_RAM),
        # what is read-only is never allowed, and neither is the image of a disk
        (replace(DATA, read_only=True), ("ext4",), "read-only filesystem"),
        *((replace(DATA, kind=kind), (kind,), "read-only filesystem") for kind in IMAGES),
    ],
)
def test_which_filesystems_are_refused(
    filesystem: Filesystem, allow: tuple[str, ...], why: str
) -> None:
    told = refused(filesystem, *allow)
    assert (told is not None) == bool(why)
    assert why in (told or "")


@each(
    "kind, word",
    [
        ("tmpfs", "tmpfs"),
        ("ramfs", "tmpfs"),
        ("devtmpfs", "tmpfs"),
        ("rootfs", "tmpfs"),
        ("hugetlbfs", "tmpfs"),
        ("overlay", "overlay"),
        ("aufs", "overlay"),
        ("fuse.fuse-overlayfs", "overlay"),
        ("nfs", "network"),
        ("nfs4", "network"),
        ("cifs", "network"),
        ("smb3", "network"),
        ("ceph", "network"),
        ("lustre", "network"),
        ("9p", "network"),
        ("virtiofs", "network"),
        ("smbfs", "network"),
        ("glusterfs", "network"),
        ("beegfs", "network"),
        ("gpfs", "network"),
        ("afs", "network"),
        ("ocfs2", "network"),
        ("gfs2", "network"),
        ("orangefs", "network"),
        ("wekafs", "network"),
        ("fuse.sshfs", "network"),
        ("fuse.glusterfs", "network"),
        ("fuse.anything", "network"),
        ("fuse", "network"),
    ],
)
def test_what_is_no_disk_of_this_machine_must_be_allowed(kind: str, word: str) -> None:
    found = replace(DATA, kind=kind)
    told = refused(found)
    assert "no disk of this machine" in told
    assert f"add '{word}' to its allow" in told
    assert kind in told
    assert refused(found, word) is None
    assert refused(found, kind) is None
    others = {"tmpfs", "overlay", "network"} - {word, kind}
    assert refused(found, *others) is not None


@each(
    "size_gib, free_gib, need_gib, fits",
    [
        (100, 18, 8, True),  # 10 GiB stay
        (100, 18 - 1 / GIB, 8, False),
        (400, 28, 8, True),  # 5 % stay
        (400, 28 - 1 / GIB, 8, False),
        (400, 0, 0, True),  # nothing is written
        (5, 5, 1, False),
    ],
)
def test_room_that_must_stay_free(
    size_gib: float, free_gib: float, need_gib: float, fits: bool
) -> None:
    found = replace(DATA, size_bytes=int(size_gib * GIB), free_bytes=round(free_gib * GIB))
    told = refused(found, need=int(need_gib * GIB))
    assert (told is None) == fits
    if told is not None:
        assert "must stay free on /data" in told
        assert f"{need_gib:g} GiB are to be written" in told


ONE = DeclaredScratch("/data")


@each(
    "profile, declared, due",
    [
        ("accept", (ONE,), [(7 * GIB, GIB)]),
        ("accept", (DeclaredScratch("/data", keep=False),), [(8 * GIB, 0)]),
        ("accept", (DeclaredScratch("/data", write_gib=500),), [(7 * GIB, GIB)]),
        ("accept", (ONE, ONE), [(3 * GIB, GIB)] * 2),
        ("accept", (ONE,) * 3, [(ACCEPT_BYTES // 3 // MIB * MIB, 0)] * 3),
        ("soak", (ONE,), [(8 * GIB, 0)]),
        ("soak", (DeclaredScratch("/data", write_gib=500), ONE), [(500 * GIB, 0), (4 * GIB, 0)]),
        ("smoke", (ONE, ONE), [(0, 0)] * 2),
        ("nightly", (DeclaredScratch("/data", write_gib=500),), [(0, 0)]),
        ("train", (ONE,), [(0, 0)]),
        ("accept", (), []),
    ],
)
def test_bytes_of_a_profile(
    profile: str, declared: tuple[DeclaredScratch, ...], due: list[tuple[int, int]]
) -> None:
    assert budgets(profile, declared) == tuple(Budget(*one) for one in due)


@pytest.mark.parametrize("count", range(1, 40))
def test_accept_never_writes_more_than_it_says(count: int) -> None:
    found = budgets("accept", (ONE,) * count)
    assert 0 < sum(one.all_bytes for one in found) <= ACCEPT_BYTES
    assert {one.kept_bytes for one in found} <= {0, KEPT_BYTES}


@each(
    "test_gib, due_gib",
    [(0, 0), (8, 0), (11, 0), (12, 4), (200, 192)],
)
def test_only_what_a_soak_may_write_beyond_fills_the_cache(test_gib: int, due_gib: int) -> None:
    assert full_cache_bytes(test_gib * GIB) == due_gib * GIB


def test_the_names_of_our_own_folders() -> None:
    assert home("/") == "/.rigproof"
    assert home("/data") == "/data/.rigproof"
    assert run_folder("/data", "2026-1") == "/data/.rigproof/run-2026-1"
    assert kept_folder("/data") == "/data/.rigproof/kept"
    assert sealed_file("/data") == "/data/.rigproof/kept/sealed"


@each(
    "disks, block, kind, name",
    [
        (("nvme0n1",), "dm-0", "ext4", "nvme0n1"),
        (("sda", "sdb"), "md0", "ext4", "md0"),
        ((), None, "zfs", "zfs"),
        (("sda", "sdb"), None, "btrfs", "btrfs"),
    ],
)
def test_whose_numbers_they_are(
    disks: tuple[str, ...], block: str | None, kind: str, name: str
) -> None:
    assert component(disks, block, kind) == Part("disk", name)
