from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from machine_tree import Tree
from refusal import assert_raises, raised

from acceptance.observe import kernel_counters, sysfs
from acceptance.observe.sysfs import SysfsError


def write(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_absent_empty_and_unreadable_are_all_none(tmp_path: Path) -> None:
    empty = write(tmp_path / "empty", " \n")
    for path in (tmp_path / "none", empty, tmp_path):
        assert sysfs.text(path) is None
        assert sysfs.number(path) is None
        assert sysfs.cpus(path) is None
        assert sysfs.target(path) is None
    assert sysfs.content(tmp_path / "none") is None
    assert sysfs.entries(tmp_path / "none") == ()


@each("content, value", [("12\n", 12), ("-1\n", -1), ("0x10de\n", 0x10DE), ("7\0\n", 7)])
def test_numbers(tmp_path: Path, content: str, value: int) -> None:
    assert sysfs.number(write(tmp_path / "file", content)) == value


@each("content", ["twelve", "1.5", "0x", "1 2", "--1"])
def test_what_is_no_number_is_quoted(tmp_path: Path, content: str) -> None:
    with pytest.raises(SysfsError, match="not a number") as caught:
        sysfs.number(write(tmp_path / "file", content))
    assert repr(content) in str(caught.value)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpu_lists_come_back(tmp_path_factory: pytest.TempPathFactory, members: set[int]) -> None:
    path = tmp_path_factory.mktemp("cpus") / "online"
    assert sysfs.cpus(write(path, ",".join(map(str, members)))) == tuple(sorted(members))


def test_cpu_ranges(tmp_path: Path) -> None:
    assert sysfs.cpus(write(tmp_path / "online", "0-3,8, 10-11\n")) == (0, 1, 2, 3, 8, 10, 11)
    assert "not a list of CPUs" in raised(SysfsError, sysfs.cpus, write(tmp_path / "bad", "0-3;8"))


def test_bytes_and_link_targets(tmp_path: Path) -> None:
    assert sysfs.content(write(tmp_path / "file", "abc")) == b"abc"
    (tmp_path / "driver").symlink_to("../drivers/nvidia")
    assert sysfs.target(tmp_path / "driver") == "nvidia"


@each(
    "numbers, why",
    [
        ((), "not_offered"),
        ((errno.ENOENT,), "not_offered"),
        ((errno.EOPNOTSUPP, None), "not_offered"),
        ((errno.EACCES, errno.ENOENT), "not_permitted"),
        ((errno.EPERM,), "not_permitted"),
        ((errno.EACCES, errno.EIO), "no_answer"),
        ((errno.EINVAL,), "no_answer"),
        ((None, errno.ENODEV), "no_answer"),
    ],
)
def test_why_files_give_no_value(numbers: tuple[int | None, ...], why: str) -> None:
    waiting = list(numbers)

    class Refusing:
        def read_bytes(self) -> bytes:
            number = waiting.pop(0)
            if number is not None:
                raise OSError(number, os.strerror(number))
            return b"Unknown"

    files: Any = [Refusing() for _ in numbers]
    assert sysfs.lack(files) == why
    assert not waiting


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
    assert_raises(SysfsError, kernel_counters.read_edac, tmp_path)


def test_growth_is_known_of_what_did_not_fall() -> None:
    before, after = {"a": 3, "b": 1, "c": 5, "d": 0}, {"a": 4, "b": 0, "d": 0, "new": 2}
    found = kernel_counters.growth(before, after)
    assert found.grown == {"a": 1, "d": 0, "new": 2}
    assert found.lost == ("b", "c")
