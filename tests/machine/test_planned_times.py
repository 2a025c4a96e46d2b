"""The planned time of every profile on the machines of the shipped machine files, which no change
makes longer by accident.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from boxes import BOXES
from synthetic_machines import prepared_plan

from acceptance import resources
from acceptance.reports.progress import eta_s
from acceptance.run import profile

FILE = Path(__file__).with_name("planned_times.toml")
RENEW = "RIGPROOF_FREEZE=1 .venv/bin/python -m pytest tests/machine/test_planned_times.py"
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
