from __future__ import annotations

from pathlib import Path

import pytest
from machine_tree import Tree

from acceptance.observe import kernel_counters
from acceptance.observe.sysfs import SysfsError

MC = "sys/devices/system/edac/mc"


def test_a_machine_without_a_driver_for_its_memory_counts_nothing(tmp_path: Path) -> None:
    assert kernel_counters.read_edac(tmp_path) == {}


def test_the_counters_of_every_controller(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.files(f"{MC}/mc0", ce_count=3, ue_count=0, ce_noinfo_count=9)
    tree.files(f"{MC}/mc1", ce_count="", ue_count=1)
    tree.files(f"{MC}/power", ce_count=7)
    assert kernel_counters.read_edac(tmp_path) == {
        "mc0/ce_count": 3,
        "mc0/ue_count": 0,
        "mc1/ue_count": 1,
    }


@pytest.mark.parametrize("count", ["many", "-1"])
def test_what_is_no_count(tmp_path: Path, count: str) -> None:
    Tree(tmp_path).files(f"{MC}/mc0", ce_count=count)
    with pytest.raises(SysfsError):
        kernel_counters.read_edac(tmp_path)


def test_growth_is_known_of_what_did_not_fall() -> None:
    before, after = {"a": 3, "b": 1, "c": 5, "d": 0}, {"a": 4, "b": 0, "d": 0, "new": 2}
    found = kernel_counters.growth(before, after)
    assert found.grown == {"a": 1, "d": 0, "new": 2}
    assert found.lost == ("b", "c")
