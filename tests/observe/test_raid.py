from __future__ import annotations

from pathlib import Path

import pytest
from cases import each
from machine_tree import Tree
from worded import worded

from acceptance.observe import raid
from acceptance.observe.raid import RaidArray, RaidMember
from acceptance.observe.sysfs import SysfsError

SOUND = RaidArray(
    "md0",
    "raid5",
    "clean",
    0,
    "idle",
    0,
    (RaidMember("sda1", ("in_sync",)), RaidMember("sdb1", ("in_sync", "write_mostly"))),
)


def array(root: Path, **files: str | int) -> Tree:
    tree = Tree(root)
    sound: dict[str, str | int] = {
        "level": "raid5",
        "array_state": "clean",
        "degraded": 0,
        "sync_action": "idle",
        "mismatch_cnt": 0,
        "metadata_version": "1.2",
    }
    tree.files("sys/block/md0/md", **{**sound, **files})
    tree.files("sys/block/md0/md/dev-sda1", state="in_sync")
    tree.files("sys/block/md0/md/dev-sdb1", state="in_sync,write_mostly")
    tree.files("sys/block/sda", size=1)
    return tree


def test_a_sound_array(tmp_path: Path) -> None:
    array(tmp_path)
    assert raid.read(tmp_path) == (SOUND,)
    assert raid.faults(SOUND) == raid.remarks(SOUND) == ()


def test_no_array(tmp_path: Path) -> None:
    Tree(tmp_path).files("sys/block/md0", size=0)
    assert raid.read(tmp_path) == ()


def test_without_sysfs_nothing_is_known(tmp_path: Path) -> None:
    with pytest.raises(SysfsError, match="sys/block"):
        raid.read(tmp_path)


@each("level", ["raid0", "linear"])
def test_levels_without_redundancy(tmp_path: Path, level: str) -> None:
    array(tmp_path, level=level)
    (found,) = raid.read(tmp_path)
    assert (found.degraded, found.action, found.mismatches) == (None, None, None)
    assert raid.faults(found) == ()


@each(
    "files",
    [{"metadata_version": "external:imsm", "array_state": "inactive"}, {"array_state": "clear"}],
)
def test_what_is_no_array(tmp_path: Path, files: dict[str, str]) -> None:
    array(tmp_path, level="", **files)
    assert raid.read(tmp_path) == ()


def test_an_array_that_was_not_started(tmp_path: Path) -> None:
    array(tmp_path, level="", array_state="inactive")
    (found,) = raid.read(tmp_path)
    assert worded(raid.faults(found)) == ("md0 is inactive: no data can be read from it",)


@each(
    "files, told",
    [
        ({"degraded": 1}, "md0 (raid5) is degraded: members missing: 1"),
        ({"mismatch_cnt": 8}, "md0 (raid5) has 8 sectors whose copies or parity differ"),
        ({"array_state": "broken"}, "md0 (raid5) is broken: no data can be read from it"),
    ],
)
def test_faults(tmp_path: Path, files: dict[str, str | int], told: str) -> None:
    array(tmp_path, **files)
    (found,) = raid.read(tmp_path)
    assert worded(raid.faults(found)) == (told,)


def test_a_faulty_member(tmp_path: Path) -> None:
    array(tmp_path).files("sys/block/md0/md/dev-sdb1", state="faulty,write_error")
    (found,) = raid.read(tmp_path)
    assert worded(raid.faults(found)) == ("md0 (raid5) has faulty members: sdb1",)


@each("level", ["raid1", "raid10"])
def test_copies_that_may_differ_are_a_remark(tmp_path: Path, level: str) -> None:
    array(tmp_path, level=level, mismatch_cnt=128)
    (found,) = raid.read(tmp_path)
    assert raid.faults(found) == ()
    assert worded(raid.remarks(found)) == (
        f"md0 ({level}): 128 sectors differ between its copies, which proves nothing on this level "
        "(md(4))",
    )


def test_a_rebuild_is_a_remark(tmp_path: Path) -> None:
    array(tmp_path, sync_action="recover")
    (found,) = raid.read(tmp_path)
    assert worded(raid.remarks(found)) == (
        "md0 (raid5) is busy with recover: disks are slower meanwhile",
    )


@each("name", ["array_state", "sync_action", "degraded", "mismatch_cnt"])
def test_a_state_that_is_missing_or_unknown_is_an_error(tmp_path: Path, name: str) -> None:
    array(tmp_path / "a", **{name: "nonsense"})
    with pytest.raises(SysfsError, match="nonsense"):
        raid.read(tmp_path / "a")
    array(tmp_path / "b", **{name: ""})
    with pytest.raises(SysfsError, match=name):
        raid.read(tmp_path / "b")


def test_a_member_whose_state_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    array(tmp_path)
    (tmp_path / "sys/block/md0/md/dev-sda1/state").unlink()
    with pytest.raises(SysfsError, match="dev-sda1/state"):
        raid.read(tmp_path)
