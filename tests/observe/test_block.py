from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cases import each
from machine_tree import Tree

from acceptance.observe import block
from acceptance.observe.block import Moved, between, parse, table
from acceptance.observe.sysfs import SysfsError

# Linux 6.18, a virtual disk.
VDA = (
    "88112 11576 5207210 216601 117086 223974 81886992 432042 0 43148 662897 87241 28 43912856 "
    "12962 18160 1292"
)
SEEN = Moved(5207210 * 512, 81886992 * 512, 88112, 117086, 18160)


@each(
    "line, moved",
    [
        (f"   {VDA}\n", SEEN),
        (" ".join(VDA.split()[:11]), replace(SEEN, flushes=None)),
        (" ".join(VDA.split()[:15]), replace(SEEN, flushes=None)),
        (VDA, SEEN),
        (f"{VDA} 1 2", SEEN),
    ],
    told=["a line", "no flushes of older kernels", "nor with discards", "with them", "and more"],
)
def test_the_counters_of_a_disk(line: str, moved: Moved) -> None:
    assert parse(line) == moved


@each(
    "line",
    ["", "1 2 3", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 x 8 9 10 11", "1 2 -3 4 5 6 7 8 9 1 1"],
)
def test_a_short_or_foreign_line(line: str) -> None:
    with pytest.raises(SysfsError, match="counters of a disk are not understood"):
        parse(line)


def test_the_table_of_all_devices() -> None:
    text = f" 254       0 vda {VDA}\n\n 253 0 zram0 0 0 0 0 0 0 0 0 0 0 0\n"
    assert table(text) == {"vda": SEEN, "zram0": Moved(0, 0, 0, 0, None)}


@each("text", ["254 0\n", f"254 0 vda {VDA}\n254 0 vda {VDA}\n", "254 0 vda 1 2 3\n"])
def test_a_table_that_is_none(text: str) -> None:
    with pytest.raises(SysfsError, match="not understood: 254 0"):
        table(text)


def test_the_disks_are_read_by_name(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("sys/class/block/vda/stat", f"{VDA}\n")
    assert block.read(["vda"], tree.root) == {"vda": SEEN}
    with pytest.raises(SysfsError, match="sdb is gone"):
        block.read(["vda", "sdb"], tree.root)


def test_an_nvme_disk_that_is_counted_on_its_ways(tmp_path: Path) -> None:
    """Those of another disk, or of another namespace, are not its own."""
    tree = Tree(tmp_path)

    def counted(name: str, read: int, written: int) -> None:
        tree.write(f"sys/class/block/{name}/stat", f"1 0 {read} 0 2 0 {written} 0 0 0 0")

    counted("nvme1n1", 0, 0)
    counted("nvme1c0n1", 8, 16)
    counted("nvme1c12n1", 1, 2)
    for other in ("nvme1c0n2", "nvme11c0n1", "nvme1n11"):
        counted(other, 1000, 1000)
    (tree.root / "sys/class/block/nvme1c3n1").mkdir()  # a way that was lost just now
    (found,) = block.read(["nvme1n1"], tree.root).values()
    assert found == Moved(9 * 512, 18 * 512, 2, 4, None)
    counted("nvme1n1", 9, 18)  # a later kernel counts on both
    assert block.read(["nvme1n1"], tree.root) == {"nvme1n1": found}


@each(
    "own, way, flushes",
    [(0, 7, 7), (9, 7, 9), (9, None, None), (None, 7, None), (9, 0, 9)],
)
def test_flushes_of_an_nvme_disk_and_its_way(
    own: int | None, way: int | None, flushes: int | None, tmp_path: Path
) -> None:
    tree = Tree(tmp_path)
    for name, count in (("nvme0n1", own), ("nvme0c0n1", way)):
        more = "" if count is None else f" 0 0 0 0 {count} 0"
        tree.write(f"sys/class/block/{name}/stat", f"1 0 8 0 2 0 16 0 0 0 0{more}")
    assert block.read(["nvme0n1"], tree.root)["nvme0n1"].flushes == flushes


def test_what_several_disks_moved() -> None:
    before = {"a": Moved(1, 2, 3, 4, 5), "b": Moved(10, 20, 30, 40, 50)}
    after = {"a": Moved(2, 4, 6, 8, 10), "b": Moved(110, 220, 330, 440, 550), "c": SEEN}
    assert between(before, after) == Moved(101, 202, 303, 404, 505)


def test_flushes_are_unknown_where_one_disk_does_not_count_them() -> None:
    before = {"a": Moved(0, 0, 0, 0, None), "b": Moved(0, 0, 0, 0, 0)}
    assert between(before, before) == Moved(0, 0, 0, 0, None)
    assert between({"b": before["b"]}, {"b": before["a"]}).flushes is None


@each(
    "after, told",
    [
        ({}, "a is gone"),
        ({"a": Moved(0, 2, 3, 4, 5)}, "the counters of a are lower than before"),
        ({"a": Moved(1, 1, 3, 4, 5)}, "lower than before"),
        ({"a": Moved(1, 2, 2, 4, 5)}, "lower than before"),
        ({"a": Moved(1, 2, 3, 3, 5)}, "lower than before"),
        ({"a": Moved(1, 2, 3, 4, 4)}, "lower than before"),
    ],
)
def test_a_disk_that_was_away(after: dict[str, Moved], told: str) -> None:
    with pytest.raises(SysfsError, match=told):
        between({"a": Moved(1, 2, 3, 4, 5)}, after)
