"""What is seen of disks while a check works on them."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from machine_tree import Tree

from acceptance.core.evidence import Scratch
from acceptance.core.parts import Part
from acceptance.loads.storage.contract import OVER_TIME, OVER_TIME_WARM
from acceptance.machine.inventory import Disk
from acceptance.observe import storage
from acceptance.observe.sysfs import SysfsError
from acceptance.suites.fixtures import disk_watch
from acceptance.suites.fixtures.disk_watch import DiskWatch, Point

NVME = Part("disk", "nvme0n1")
SCRATCH = Scratch(
    path="/data",
    component=NVME,
    mount="/data",
    kind="ext4",
    source="/dev/nvme0n1",
    disks=("nvme0n1",),
    layers=(),
    free_bytes=1,
    write_bytes=1,
    kept_bytes=0,
    keep=False,
    sealed_bytes=0,
)
DISK = Disk("nvme0n1", "N", "S2", 1, "nvme", "nvme", None)
BLOCK = "sys/class/block/nvme0n1"
FUNCTION = "sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0"


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def moved(tree: Tree, read_gb: float, written_gb: float) -> None:
    """What the disk has moved, as the kernel counts it, in sectors."""
    read, written = (int(one * 1e9 / 512) for one in (read_gb, written_gb))
    tree.files(BLOCK, stat=f"9 0 {read} 0 9 0 {written} 0 0 0 0 0 0 0 0 0 0")


def test_rates_and_temperature_over_time(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    moved(tree, 5.0, 7.0)
    tree.files(f"{BLOCK}/device/hwmon1", temp1_input=40000)
    watch = DiskWatch([SCRATCH], [], tmp_path, clock)
    watch.look()
    for at_s, read, written, heat in ((0.5, 6.0, 7.0, 50000), (1.5, 6.0, 9.0, 60000)):
        clock.now = 100.0 + at_s
        moved(tree, read, written)
        tree.files(f"{BLOCK}/device/hwmon1", temp1_input=heat)
        watch.look()
    assert list(watch.tables()) == []  # nothing worked there
    with watch.working(SCRATCH):
        pass
    ((component, rows),) = watch.tables()
    assert component == NVME
    # the thermometer is asked once a second
    assert rows == [(0.5, 2.0, 0.0, 40.0), (1.5, 0.0, 2.0, 60.0)]
    assert disk_watch.columns(rows) == OVER_TIME_WARM


def test_a_disk_without_a_thermometer_that_vanishes(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    moved(tree, 1.0, 1.0)
    other = on_disks("sdz")
    watch = DiskWatch([SCRATCH, other, on_disks()], [], tmp_path, clock)
    with watch.working(SCRATCH):
        watch.look()
        clock.now += 1.0
        moved(tree, 2.0, 1.0)
        watch.look()
        (tmp_path / BLOCK / "stat").unlink()
        clock.now += 1.0
        watch.look()
        watch.look()
    with watch.working(other):
        pass
    ((_, rows),) = watch.tables()
    assert rows == [(1.0, 1.0, 0.0)]
    assert disk_watch.columns(rows) == OVER_TIME


def on_disks(*names: str) -> Scratch:
    """A filesystem on these disks."""
    return msgspec.structs.replace(SCRATCH, component=Part("disk", "md0"), disks=names)


def test_a_long_check_has_fewer_rows() -> None:
    points = [Point(float(n), n * 10**9, 0, None) for n in range(1001)]
    rows = disk_watch.rows([points[0], *points])
    assert len(rows) <= disk_watch.MOST_ROWS
    assert {row[1] for row in rows} == {1.0}
    assert rows[-1][0] == 1000.0
    assert disk_watch.rows([points[0], *points[:2]]) == [(1.0, 1.0, 0.0)]
    assert disk_watch.rows(points[:1]) == disk_watch.rows([]) == []


def test_a_temperature_that_was_not_read_is_empty(tmp_path: Path) -> None:
    points = [Point(0.0, 0, 0, 30.0), Point(1.0, 10**9, 0, None)]
    assert disk_watch.rows(points) == [(1.0, 1.0, 0.0, "")]
    Tree(tmp_path).files(f"{BLOCK}/device/hwmon1", temp1_input="warm")
    found = storage.find_thermometer("nvme0n1", tmp_path)
    assert found is not None
    assert disk_watch.hottest([found]) is None
    found.input.unlink()
    assert disk_watch.hottest([found]) is None


def link(tree: Tree, width: int) -> None:
    """A link that now has so many of its four lanes."""
    tree.files(
        FUNCTION,
        current_link_speed="16.0 GT/s PCIe",
        current_link_width=width,
        max_link_speed="16.0 GT/s PCIe",
        max_link_width=4,
    )


def test_the_least_of_a_link_while_its_disk_works(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    device = tree.disk("nvme0n1", "pci0000:00/0000:00:01.0/0000:04:00.0/nvme/nvme0")
    tree.link(f"{device}/device", FUNCTION)
    watch = DiskWatch([], [DISK], tmp_path)
    for width, at_work in ((1, False), (4, True), (2, True), (4, True)):
        link(tree, width)
        if at_work:
            with watch.working(SCRATCH):
                watch.look()
        else:
            watch.look()
    assert {name: one.share for name, one in watch.least.items()} == {NVME: 0.5}
    (tmp_path / FUNCTION / "current_link_width").unlink()  # a link that is not shown is no link
    with watch.working(SCRATCH):
        watch.look()
    tree.files(FUNCTION, current_link_speed="fast")
    with pytest.raises(SysfsError, match="fast"), watch.working(SCRATCH):
        watch.look()


def test_it_looks_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_watch, "POLL_S", 0.001)
    moved(Tree(tmp_path), 1.0, 1.0)
    watch = DiskWatch([SCRATCH], [], tmp_path)
    with watch.running(), watch.working(SCRATCH):
        until = time.monotonic() + 10.0
        while not list(watch.tables()) and time.monotonic() < until:
            time.sleep(0.01)
    assert list(watch.tables())
