from __future__ import annotations

import dataclasses
import os
from pathlib import Path, PurePosixPath

import pytest
from cases import each
from machine_tree import Tree

from acceptance.machine.filesystem import Filesystem
from acceptance.observe import filesystem
from acceptance.observe.filesystem import holder, mounts
from acceptance.observe.sysfs import SysfsError

ROOT = "27 1 259:2 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The kernel's files of a machine; the folder `data` beside them is what is asked about."""
    (tmp_path / "data").mkdir()
    tree = Tree(tmp_path / "root")
    tree.disk("nvme0n1", "pci0000:00/0000:04:00.0/nvme/nvme0")
    block(tree, "nvme0n1p2", "259:2", "pci0000:00/0000:04:00.0/nvme/nvme0/block/nvme0n1/nvme0n1p2")
    tree.write("sys/class/block/nvme0n1p2/partition", "2\n")
    return tree


def block(tree: Tree, name: str, number: str, path: str) -> str:
    folder = f"sys/devices/{path}"
    tree.link(f"sys/dev/block/{number}", folder)
    tree.link(f"sys/class/block/{name}", folder)
    return folder


def on(tree: Tree, kind: str, source: str, number: str, options: str = "rw") -> Filesystem:
    """The filesystem of the folder `data`, which is mounted so."""
    data = tree.root.parent / "data"
    point = str(data).replace(" ", "\\040")
    line = f"40 27 {number} / {point} rw,noatime shared:7 - {kind} {source} {options}\n"
    tree.write("proc/self/mountinfo", ROOT + line)
    return filesystem.read(data, tree.root)


def test_a_partition_is_on_its_disk(tree: Tree) -> None:
    found = on(tree, "ext4", "/dev/nvme0n1p2", "259:2")
    data = tree.root.parent / "data"
    assert (found.mount, found.kind, found.source) == (str(data), "ext4", "/dev/nvme0n1p2")
    assert (found.device, found.block) == ("259:2", "nvme0n1p2")
    assert (found.disks, found.layers, found.read_only) == (("nvme0n1",), (), False)
    room = os.statvfs(data)
    assert found.size_bytes == room.f_blocks * room.f_frsize
    assert 0 < found.free_bytes <= found.size_bytes


def test_a_folder_that_is_no_mount_point_is_on_the_filesystem_above(tree: Tree) -> None:
    tree.write("proc/self/mountinfo", ROOT)
    found = filesystem.read(tree.root.parent / "data", tree.root)
    assert (found.mount, found.disks) == ("/", ("nvme0n1",))


def test_a_link_in_the_path_leads_to_its_target(tree: Tree) -> None:
    on(tree, "ext4", "/dev/nvme0n1p2", "259:2")
    link = tree.root.parent / "link"
    link.symlink_to("data")
    assert filesystem.read(link, tree.root).mount == str(tree.root.parent / "data")


@pytest.mark.parametrize(
    ("point", "options"), [("ro,noatime", "rw"), ("rw", "ro,errors=remount-ro")]
)
def test_read_only_by_mount_or_by_superblock(tree: Tree, point: str, options: str) -> None:
    data = tree.root.parent / "data"
    line = f"40 27 259:2 / {data} {point} - ext4 /dev/nvme0n1p2 {options}\n"
    tree.write("proc/self/mountinfo", ROOT + line)
    assert filesystem.read(data, tree.root).read_only


def test_mappings_and_raid_down_to_the_disks(tree: Tree) -> None:
    tree.disk("sda", "pci0000:00/0000:00:17.0/ata3")
    block(tree, "sda", "8:0", "pci0000:00/0000:00:17.0/ata3/block/sda")
    block(tree, "sda1", "8:1", "pci0000:00/0000:00:17.0/ata3/block/sda/sda1")
    tree.write("sys/class/block/sda1/partition", "1\n")
    crypt = block(tree, "dm-0", "253:0", "virtual/block/dm-0")
    lvm = block(tree, "dm-1", "253:1", "virtual/block/dm-1")
    raid = block(tree, "md0", "9:0", "virtual/block/md0")
    tree.files(f"{crypt}/dm", uuid="CRYPT-LUKS2-0123-luks")
    tree.files(f"{lvm}/dm", uuid="LVM-abc")
    tree.files(f"{raid}/md", level="raid1")
    tree.link(f"{crypt}/slaves/dm-1", lvm)
    tree.link(f"{lvm}/slaves/md0", raid)
    for part in ("sda1", "nvme0n1p2"):
        (tree.root / raid / "slaves").mkdir(exist_ok=True)
        target = (tree.root / "sys/class/block" / part).resolve()
        (tree.root / raid / "slaves" / part).symlink_to(target)
    found = on(tree, "xfs", "/dev/mapper/data", "253:0")
    assert found.disks == ("nvme0n1", "sda")
    assert found.layers == ("crypt", "lvm", "raid1")
    assert (found.device, found.block) == ("253:0", "dm-0")


@each(
    "name, uuid, layers",
    [
        ("dm-3", "mpath-36001405", ("multipath",)),
        ("dm-3", "part1-mpath-36001405", ("multipath",)),
        ("dm-3", "DMRAID-isw", ("raid",)),
        ("dm-3", "VDO-1", ("vdo",)),
        ("dm-3", "", ("dm",)),
        ("zram0", None, ("ram",)),
        ("ram1", None, ("ram",)),
        ("ramses", None, ()),
        ("pmem0", None, ()),
    ],
)
def test_the_kinds_of_mappings_and_disks_of_ram(
    tmp_path: Path, name: str, uuid: str | None, layers: tuple[str, ...]
) -> None:
    (tmp_path / "data").mkdir()
    tree = Tree(tmp_path / "root")
    folder = block(tree, name, "253:3", f"virtual/block/{name}")
    if uuid is not None:
        tree.files(f"{folder}/dm", uuid=uuid)
    found = on(tree, "ext4", f"/dev/{name}", "253:3")
    assert (found.disks, found.layers) == ((name,), layers)


def test_a_cache_before_a_disk(tree: Tree) -> None:
    folder = block(tree, "bcache0", "251:0", "virtual/block/bcache0")
    tree.write(f"{folder}/bcache/state", "clean\n")
    tree.link(
        f"{folder}/slaves/nvme0n1", "sys/devices/pci0000:00/0000:04:00.0/nvme/nvme0/block/nvme0n1"
    )
    found = on(tree, "ext4", "/dev/bcache0", "251:0")
    assert (found.disks, found.layers) == (("nvme0n1",), ("bcache",))


def test_btrfs_is_found_by_its_source_and_lists_its_members(tree: Tree) -> None:
    tree.disk("sdb", "pci0000:00/0000:00:17.0/ata4")
    block(tree, "sdb", "8:16", "pci0000:00/0000:00:17.0/ata4/block/sdb")
    for member in ("nvme0n1p2", "sdb"):
        tree.write(f"sys/fs/btrfs/ffff-uuid/devices/{member}/size", "1\n")
    tree.write("sys/fs/btrfs/features/skinny", "1\n")
    found = on(tree, "btrfs", "/dev/sdb", "0:42")
    assert (found.device, found.block) == (None, "sdb")
    assert (found.disks, found.layers) == (("nvme0n1", "sdb"), ("btrfs",))


def test_only_btrfs_has_the_members_of_a_btrfs(tree: Tree) -> None:
    for member in ("nvme0n1p2", "sdb"):
        tree.write(f"sys/fs/btrfs/ffff-uuid/devices/{member}/size", "1\n")
    found = on(tree, "ext4", "/dev/nvme0n1p2", "259:2")
    assert (found.disks, found.layers) == (("nvme0n1",), ())


def test_btrfs_of_one_disk_behind_a_named_mapping(tree: Tree) -> None:
    folder = block(tree, "dm-0", "253:0", "virtual/block/dm-0")
    tree.files(f"{folder}/dm", uuid="CRYPT-PLAIN-x")
    tree.write("dev/dm-0", "")
    (tree.root / "dev/mapper").mkdir()
    (tree.root / "dev/mapper/data").symlink_to("../dm-0")
    found = on(tree, "btrfs", "/dev/mapper/data", "0:42")
    assert (found.block, found.disks, found.layers) == ("dm-0", ("dm-0",), ("crypt",))


@each("kind, source", [("zfs", "tank/data"), ("nfs4", "box:/export"), ("btrfs", "/dev/sdq")])
def test_without_a_device_no_disk_is_known(tmp_path: Path, kind: str, source: str) -> None:
    (tmp_path / "data").mkdir()
    found = on(Tree(tmp_path / "root"), kind, source, "0:50")
    assert (found.device, found.block, found.disks, found.layers) == (None, None, (), ())


def test_a_source_of_the_name_of_a_disk_is_none(tree: Tree) -> None:
    found = on(tree, "zfs", "tank/nvme0n1p2", "0:50")
    assert (found.block, found.disks) == (None, ())


def test_a_loop_device_is_on_the_disk_of_its_file(tree: Tree) -> None:
    folder = block(tree, "loop0", "7:0", "virtual/block/loop0")
    tree.files(f"{folder}/loop", backing_file="/var/image.raw")
    found = on(tree, "ext4", "/dev/loop0", "7:0")
    assert (found.disks, found.layers) == (("nvme0n1",), ("loop",))


def test_a_loop_device_may_lie_in_ram(tree: Tree) -> None:
    folder = block(tree, "loop0", "7:0", "virtual/block/loop0")
    data = tree.root.parent / "data"
    tree.files(f"{folder}/loop", backing_file="/ram/image.raw")
    shm = "25 27 0:23 / /ram rw - tmpfs tmpfs rw\n"
    line = f"40 27 7:0 / {data} rw - ext4 /dev/loop0 rw\n"
    tree.write("proc/self/mountinfo", ROOT + shm + line)
    found = filesystem.read(data, tree.root)
    assert (found.disks, found.layers) == ((), ("loop", "tmpfs"))


def test_a_device_that_sysfs_does_not_have(tree: Tree) -> None:
    with pytest.raises(SysfsError, match=r"8:99 of .* is not in /sys/dev/block"):
        on(tree, "ext4", "/dev/sdz", "8:99")


def test_no_mountinfo(tree: Tree) -> None:
    with pytest.raises(SysfsError, match="mount /proc"):
        filesystem.read(tree.root.parent / "data", tree.root)


@pytest.mark.parametrize("path", ["/", "/dev/shm", "/proc/self"])
def test_this_machine(path: str) -> None:
    found = filesystem.read(Path(path))
    assert Path(path).resolve().is_relative_to(found.mount)


LISTED = mounts(
    ROOT
    + "30 27 8:1 / /data rw - ext4 /dev/sda1 rw\n"
    + "31 30 8:2 / /data/deep rw - ext4 /dev/sda2 rw\n"
    + "32 27 8:3 / /a\\040b\\134c rw shared:1 master:2 - ext4 /dev/sda3 rw\n"
    + "33 27 8:4 / /twice rw - ext4 /dev/sda4 rw\n"
    + "34 33 8:5 / /twice rw - ext4 /dev/sda5 rw\n"
    + "35 27 8:6 / /over/deep rw - ext4 /dev/sda6 rw\n"
    + "36 27 8:7 / /over rw - ext4 /dev/sda7 rw\n"
)


@each(
    "path, source",
    [
        ("/", "/dev/nvme0n1p2"),
        ("/database", "/dev/nvme0n1p2"),
        ("/data", "/dev/sda1"),
        ("/data/x/y", "/dev/sda1"),
        ("/data/deep/x", "/dev/sda2"),
        ("/a b\\c/d", "/dev/sda3"),
        ("/twice/x", "/dev/sda5"),  # the last mount on a point wins
        ("/over/deep", "/dev/sda7"),  # what a later mount hides is not taken
    ],
)
def test_the_mount_that_holds_a_path(path: str, source: str) -> None:
    assert holder(PurePosixPath(path), LISTED).source == source


def test_in_a_changed_root_only_its_own_mounts_are_listed() -> None:
    listed = mounts("30 27 8:1 / /data rw - ext4 /dev/sda1 rw\n")
    assert holder(PurePosixPath("/data/x"), listed).source == "/dev/sda1"
    with pytest.raises(SysfsError, match="no mount of /proc/self/mountinfo holds /home"):
        holder(PurePosixPath("/home"), listed)


def test_the_first_mount_may_be_its_own_parent() -> None:
    listed = mounts("1 1 0:2 / / rw - rootfs rootfs rw\n")
    assert holder(PurePosixPath("/x"), listed).kind == "rootfs"


@each(
    "line",
    [
        "27 1 259:2 / / rw",
        "27 1 259:2 / / - ext4 /dev/sda rw",
        "27 1 259:2 / / rw - ext4 /dev/sda",
        "x 1 259:2 / / rw - ext4 /dev/sda rw",
        "27 x 259:2 / / rw - ext4 /dev/sda rw",
        "27 1 259 / / rw - ext4 /dev/sda rw",
        "nonsense",
    ],
)
def test_a_line_that_is_no_mount(line: str) -> None:
    with pytest.raises(SysfsError) as caught:
        mounts(ROOT + line + "\n")
    assert line in str(caught.value)


def test_the_filesystems_of_the_disks(tree: Tree) -> None:
    """One for each disk, and none that storage tests refuse."""
    data = tree.root.parent / "data"
    (data / "again").mkdir()
    (data / "file").write_text("")
    tree.disk("sda", "pci0000:00/0000:00:17.0/ata3")
    block(tree, "sda", "8:0", "pci0000:00/0000:00:17.0/ata3/block/sda")
    of_disk = f"- ext4 /dev/nvme0n1p2 rw\n40 27 0:31 / {data}"
    lines = (
        f"40 27 259:2 / {data} rw {of_disk} rw - tmpfs tmpfs rw\n"
        f"41 27 8:0 / {data}/again rw - xfs /dev/sda rw\n"
        f"42 27 8:0 / {data}/file rw - xfs /dev/sda rw\n"
        f"43 27 8:16 / {data}/again ro - xfs /dev/sdb ro\n"
        f"44 27 8:32 / {data}/again rw - xfs /dev/sdc rw\n"  # a device that sysfs does not have
    )
    tree.write("proc/self/mountinfo", ROOT + lines)
    found = filesystem.on_disks(tree.root)
    assert {one.disks for one in found} <= {("nvme0n1",), ("sda",)}
    assert [one.mount for one in found if one.disks == ("nvme0n1",)] == ["/"]
    assert len({one.disks for one in found}) == len(found)
    # ROOT that may only be read is none that a test writes to.
    tree.write("proc/self/mountinfo", ROOT.replace(" rw,relatime ", " ro,relatime "))
    assert filesystem.on_disks(tree.root) == ()
    tree.write("proc/self/mountinfo", f"no mount\n{ROOT}")
    assert filesystem.on_disks(tree.root) == ()
    (tree.root / "proc/self/mountinfo").unlink()
    assert filesystem.on_disks(tree.root) == ()


def test_of_several_filesystems_of_a_disk_the_largest(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tree.root.parent / "data"
    line = f"40 27 259:2 / {data} rw - ext4 /dev/nvme0n1p2 rw\n"
    tree.write("proc/self/mountinfo", ROOT + line)
    whole = filesystem.read
    sizes = {"/": 1, str(data): 2}

    def sized(path: Path, root: Path) -> Filesystem:
        found = whole(path, root)
        return dataclasses.replace(found, size_bytes=sizes[found.mount])

    monkeypatch.setattr(filesystem, "read", sized)
    assert [one.mount for one in filesystem.on_disks(tree.root)] == [str(data)]


def test_local_filesystems_by_their_source(tree: Tree) -> None:
    tree.write(
        "proc/self/mountinfo",
        ROOT
        + "30 27 259:3 / /data ro - xfs /dev/nvme0n1p3 rw\n"
        # mounted writable, made read-only by the kernel
        + "31 27 259:4 / /models rw - ext4 /dev/nvme0n1p4 ro,errors=remount-ro\n"
        # writable at one of its places
        + "32 27 259:3 / /scratch rw - xfs /dev/nvme0n1p3 rw\n"
        + "33 27 7:1 / /image rw - ext4 /dev/loop1 rw\n"
        + "34 27 0:30 / /run rw - tmpfs tmpfs rw\n",
    )
    assert filesystem.local(tree.root) == {
        "/dev/nvme0n1p2": True,
        "/dev/nvme0n1p3": True,
        "/dev/nvme0n1p4": False,
    }


def test_local_filesystems_that_the_kernel_does_not_show(tree: Tree) -> None:
    with pytest.raises(SysfsError):
        filesystem.local(tree.root)
