"""How far disks stayed below their own warning temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import each
from machine_tree import Tree
from test_storage_suite import MACHINE, NVME, SDA, Recorder

from acceptance.core.evidence import Table
from acceptance.core.message import Unmeasured
from acceptance.core.parts import Component, Part
from acceptance.loads.storage.contract import OVER_TIME, OVER_TIME_WARM
from acceptance.suites import storage
from acceptance.wording.errors import WordedError

HWMON = "sys/class/block/nvme0n1/device/hwmon1"


def over_time(
    *heat: float | str, component: Component = NVME, columns: tuple[str, ...] = OVER_TIME_WARM
) -> Table:
    """Temperatures of a filesystem's disks while they were read."""
    rows = tuple((float(n), 1.0, 0.0, one)[: len(columns)] for n, one in enumerate(heat, start=1))
    return Table("storage.read", component, "storage_over_time", columns, rows)


def ask(root: Path, *tables: Table) -> Recorder:
    check: Any = Recorder(NVME)
    storage.test_temperature(MACHINE, root, tables, check)
    found: Recorder = check
    return found


@each(
    "tables, margin",
    [
        ((), 30.0),
        ((over_time(45.0, 72.5, "", 60.0),), 7.5),
        ((over_time(60.0), over_time(81.0), over_time(50.0)), -1.0),
        # what another filesystem says is not of this disk alone
        ((over_time(99.0, component=SDA), over_time(99.0, component=Part("disk", "md0"))), 30.0),
        ((over_time(99.0, columns=OVER_TIME),), 30.0),
        ((Table("c", NVME, "another", OVER_TIME_WARM, ((1.0, 1.0, 0.0, 99.0),)),), 30.0),
    ],
)
def test_the_hottest_moment_counts(
    tmp_path: Path, tables: tuple[Table, ...], margin: float
) -> None:
    Tree(tmp_path).files(HWMON, temp1_input=50000, temp1_max=80000, temp1_crit=85000)
    check = ask(tmp_path, *tables)
    assert check.readings == {NVME: margin}
    assert check.notes[NVME] == (
        f"at most {80 - margin:g} degC, and the drive's own threshold is 80 degC"
    )


def test_without_a_warning_temperature_the_critical_one_counts(tmp_path: Path) -> None:
    Tree(tmp_path).files(HWMON, temp1_input=50000, temp1_crit=70000)
    assert ask(tmp_path).readings == {NVME: 20.0}


@each(
    "files, margins",
    [
        ({}, {}),
        ({"temp1_input": 50000}, {}),
        # what the load saw is evidence all the same
        ({"temp1_input": "", "temp1_max": 80000}, {NVME: -5.0}),
    ],
)
def test_a_temperature_that_is_not_shown_any_more_is_an_error(
    tmp_path: Path, files: dict[str, Any], margins: dict[Component, float]
) -> None:
    Tree(tmp_path).files(HWMON, **files)
    check: Any = Recorder(NVME)
    storage.test_temperature(MACHINE, tmp_path, (over_time(85.0),), check)
    assert check.readings == margins
    assert check.gaps == ({} if margins else {NVME: Unmeasured.NO_ANSWER})


@each(
    "heat, measured",
    [
        (["", *[45.0] * 5], True),
        ([*[""] * 5, *[45.0] * 15], True),  # one sample, as the rows of its second show it
        ([*[45.0, ""] * 10], False),
        ([*[""] * 10, *[45.0] * 90], True),
        ([*[""] * 11, *[45.0] * 89], False),
    ],
)
def test_a_thermometer_that_answers_part_of_the_time(
    tmp_path: Path, heat: list[float | str], measured: bool
) -> None:
    Tree(tmp_path).files(HWMON, temp1_input=50000, temp1_max=80000)
    check: Any = Recorder(NVME)
    tables = (over_time(*[45.0] * 100), over_time(*heat))
    if measured:
        storage.test_temperature(MACHINE, tmp_path, tables, check)
    else:
        with pytest.raises(WordedError) as caught:
            storage.test_temperature(MACHINE, tmp_path, tables, check)
        assert codes(caught.value) == {"disk_temperature_patches"}
    assert check.readings == {NVME: 30.0}


def codes(error: Any) -> set[str]:
    """The codes of what an error names."""
    return {one.code for one in error.message.values["why"]}
