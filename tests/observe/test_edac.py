from __future__ import annotations

from pathlib import Path

import pytest
from machine_tree import Tree

from acceptance.observe import edac
from acceptance.observe.sysfs import SysfsError

MC = "sys/devices/system/edac/mc"


def test_a_machine_without_a_driver_for_its_memory_counts_nothing(tmp_path: Path) -> None:
    assert edac.read(tmp_path) == {}


def test_the_counters_of_every_controller(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.files(f"{MC}/mc0", ce_count=3, ue_count=0, ce_noinfo_count=9)
    tree.files(f"{MC}/mc1", ce_count="", ue_count=1)
    tree.files(f"{MC}/power", ce_count=7)
    assert edac.read(tmp_path) == {"mc0/ce_count": 3, "mc0/ue_count": 0, "mc1/ue_count": 1}


def test_what_is_no_number(tmp_path: Path) -> None:
    Tree(tmp_path).files(f"{MC}/mc0", ce_count="many")
    with pytest.raises(SysfsError):
        edac.read(tmp_path)
