"""The machine files that ship: each is read, its GPUs have a sheet, and what it
waives is honest.
"""

from __future__ import annotations

from pathlib import Path

from boxes import BOXES
from cases import each
from real_checks import collected
from synthetic_machines import SHEETS, sheet_of

from acceptance import resources
from acceptance.expect.limit_book import LimitBook
from acceptance.expect.plan_builder import lint_waivers
from acceptance.machine import machine_file

FILES = sorted(resources.locate("machines").glob("*.toml"))
WITH_GPUS = [file for file in FILES if file.stem != "cpu-only"]
# What a plain user cannot read, and nothing else: no value is excused, and no gate, load or watch
# may be left out.
EXCUSED = {"storage.smart_health", "inventory.memory", "kernel_log"}


def of(file: Path) -> machine_file.Machine:
    return machine_file.read(file)


def test_the_machines_that_ship() -> None:
    assert {file.name for file in WITH_GPUS} == set(BOXES)


@each("file", FILES, told=lambda file: file.stem)
def test_each_is_named_after_its_file_and_says_what_it_is(file: Path) -> None:
    declared = of(file)
    assert declared.name == file.stem
    assert declared.description
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert max(map(len, text.splitlines())) <= 140
    lint_waivers(collected(), declared.waiver, file.name, LimitBook())


@each("file", WITH_GPUS, told=lambda file: file.stem)
def test_its_gpus_have_a_sheet_and_can_be_what_is_declared(file: Path) -> None:
    declared = of(file)
    assert declared.gpus == sum(gpu.count for gpu in declared.gpu) == BOXES[file.name].count
    for gpu in declared.gpu:
        found = sheet_of(gpu)
        assert found is SHEETS[BOXES[file.name].sheet]
        assert gpu.link_gen is None or gpu.link_gen <= (found.pcie_gen or 0)
        assert gpu.link_width is None or gpu.link_width <= (found.pcie_width or 0)
        if gpu.nvlink_links is not None:
            assert gpu.nvlink_links == found.nvlink.full()
    for pair in declared.gpu_pair:
        assert (pair.path == f"NV{declared.gpu[0].nvlink_links}") == (
            declared.gpu[0].nvlink_links is not None
        )


@each("file", WITH_GPUS, told=lambda file: file.stem)
def test_its_waivers_excuse_no_value_and_no_load(file: Path) -> None:
    declared = of(file)
    assert {one.skip for one in declared.waiver} <= EXCUSED
    assert all(one.measurement is None for one in declared.waiver)
    assert declared.limit == ()
    # A list of modules that nobody declares is not due, so nothing is to be excused.
    assert ("inventory.memory" in {one.skip for one in declared.waiver}) == (
        declared.memory.dimms is not None
    )


@each("file", WITH_GPUS, told=lambda file: file.stem)
def test_what_is_to_be_filled_in_is_right_once_it_is_filled_in(tmp_path: Path, file: Path) -> None:
    """The lines that a person uncomments are a machine file too."""
    lines = file.read_text(encoding="utf-8").splitlines()
    keys = (
        "# [",
        "# model = ",
        "# size_gb = ",
        "# count = ",
        "# cores = ",
        "# threads = ",
        "# sockets = ",
        "# name = ",
    )
    keys += (
        "# total_gib = ",
        "# dimms = ",
        "# channels = ",
        "# speed_mbps = ",
        "# between = ",
        "# path = ",
    )
    filled = [line.removeprefix("# ") if line.startswith(keys) else line for line in lines]
    (tmp_path / file.name).write_text("\n".join(filled), encoding="utf-8")
    assert machine_file.read(tmp_path / file.name) != of(file)
