"""The machine files that ship: each is read, its GPUs have a sheet, and what it
waives is honest.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from boxes import BOXES
from cases import each
from real_checks import collected
from synthetic_machines import SHEETS, prepared_plan, sheet_of

from acceptance import resources
from acceptance.expect.limit_book import LimitBook
from acceptance.expect.plan_builder import lint_waivers
from acceptance.machine import machine_file
from acceptance.reports.progress import eta_s
from acceptance.run import profile

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


FILE = Path(__file__).with_name("planned_times.toml")
RENEW = "RIGPROOF_FREEZE=1 .venv/bin/python -m pytest tests/machine/test_shipped_machines.py"
HEAD = f"""\
# Planned seconds of each profile, by machine file. A plan that takes longer fails a test. Where
# that is meant, and where a plan got shorter, renew this file:
# {RENEW}
"""
PROFILES = profile.read(resources.locate("profiles.toml"))


def planned_s() -> dict[str, dict[str, float]]:
    """Seconds by profile and machine file, rounded to a tenth as the file has them."""
    return {
        name: {file: round(eta_s(prepared_plan(box, name)), 1) for file, box in BOXES.items()}
        for name in PROFILES
    }


def frozen(found: dict[str, dict[str, float]]) -> str:
    """The file's text."""
    tables = (
        f"\n[{name}]\n" + "".join(f'"{file}" = {own[file]}\n' for file in sorted(own))
        for name, own in found.items()
    )
    return HEAD + "".join(tables)


def test_no_plan_takes_longer_than_before() -> None:
    found = planned_s()
    if os.environ.get("RIGPROOF_FREEZE"):
        FILE.write_text(frozen(found), encoding="utf-8")
    before = tomllib.loads(FILE.read_text(encoding="utf-8"))
    assert {name: set(own) for name, own in before.items()} == {
        name: set(own) for name, own in found.items()
    }
    longer = [
        f"{name} on {file}: {seconds} s, and was {before[name][file]} s"
        for name, own in found.items()
        for file, seconds in own.items()
        if seconds > before[name][file]
    ]
    assert longer == [], f"if that is meant: {RENEW}"


# 2 % more than the goal is no more than a plan can tell.
# The plans that take longer than their goal, by profile and number of GPUs. One that no longer does
# leaves this list.
LONGER = {("smoke", 1), ("smoke", 2), ("smoke", 8)}


def test_the_plans_of_the_shipped_machine_files_keep_to_their_goals() -> None:
    longer = set()
    for name, own in planned_s().items():
        goal = PROFILES[name].goal_s
        for file, seconds in own.items() if goal else ():
            goal_s = goal.of(BOXES[file].count) if goal else None
            if goal_s is not None and seconds > 1.02 * goal_s:
                longer.add((name, BOXES[file].count))
    assert longer == LONGER


def test_every_profile_but_soak_has_a_goal_for_one_two_and_eight_gpus() -> None:
    goals = {name: one.goal_s for name, one in PROFILES.items()}
    assert goals.pop("soak") is None
    for goal in goals.values():
        assert goal.one <= goal.two <= goal.eight
        assert [goal.of(gpus) for gpus in (1, 2, 8)] == [goal.one, goal.two, goal.eight]
        assert goal.of(4) is None
