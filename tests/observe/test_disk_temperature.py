"""Thermometers of disks, in trees as the kernel has them."""

from __future__ import annotations

from pathlib import Path

from cases import each
from known import known
from machine_tree import Tree
from refusal import raised

from acceptance.core.parts import Part
from acceptance.machine.inventory import Disk
from acceptance.observe import disk_temperature, sysfs

NVME, SATA = "sys/class/block/nvme0n1/device", "sys/class/block/sda/device"


@each(
    "place",
    [
        f"{NVME}/hwmon3",
        f"{NVME}/hwmon/hwmon3",
        f"{NVME}/device/hwmon/hwmon0",
        f"{NVME}/nvme2/hwmon1",
        f"{NVME}/nvme2/device/hwmon/hwmon1",
    ],
)
def test_an_nvme_drive_wherever_the_kernel_has_its_thermometer(tmp_path: Path, place: str) -> None:
    Tree(tmp_path).files(place, temp1_input=41850, temp1_max=81850, temp1_crit=84850)
    found = known(disk_temperature.find("nvme0n1", tmp_path))
    assert (found.now(), found.warning_c, found.critical_c) == (41.85, 81.85, 84.85)


def test_thresholds_that_a_drive_does_not_state(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA}/hwmon/hwmon1", temp1_input=-3000, temp1_crit=0)
    Tree(tmp_path).files(f"{NVME}/hwmon1", temp1_input=30000, temp1_max=65261850)
    for name, now in (("sda", -3.0), ("nvme0n1", 30.0)):
        found = known(disk_temperature.find(name, tmp_path))
        assert (found.now(), found.warning_c, found.critical_c) == (now, None, None)


def test_a_drive_that_goes_away_and_one_that_has_none(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA}/hwmon/hwmon1", temp1_input=30000)
    Tree(tmp_path).files(f"{NVME}/hwmon1", name="nvme")
    assert disk_temperature.find("nvme0n1", tmp_path) is None
    assert disk_temperature.find("sdb", tmp_path) is None
    found = known(disk_temperature.find("sda", tmp_path))
    found.input.unlink()
    assert found.now() is None


@each("millidegrees", [-273150, -60000, 200000, 65261850])
def test_a_temperature_that_no_drive_has_is_none(tmp_path: Path, millidegrees: int) -> None:
    Tree(tmp_path).files(f"{NVME}/hwmon1", temp1_input=millidegrees, temp1_max=81850)
    assert known(disk_temperature.find("nvme0n1", tmp_path)).now() is None


def test_a_value_that_is_none(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{SATA}/hwmon/hwmon1", temp1_input="warm")
    found = known(disk_temperature.find("sda", tmp_path))
    assert "warm" in raised(sysfs.SysfsError, found.now)


def test_which_disks_show_a_temperature_and_a_threshold(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{NVME}/hwmon1", temp1_input=30000, temp1_max=80000)
    Tree(tmp_path).files(f"{SATA}/hwmon/hwmon1", temp1_input=30000)
    disks = [Disk(name, "M", None, 1, None, None, None) for name in ("nvme0n1", "sda", "sdb")]
    assert disk_temperature.limited(disks, tmp_path) == {Part("disk", "nvme0n1")}
    assert known(disk_temperature.find("nvme0n1", tmp_path)).limit_c == 80.0
