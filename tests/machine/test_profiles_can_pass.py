"""Every shipped profile on every shipped machine file can pass: its plan has no gap, and what a
sound machine measures is a PASS.

Each file is taken as it ships, and with its commented lines filled in and what it leaves out
besides declared, so that no check is left out for want of a part.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from boxes import BOXES, Box
from cases import each
from real_checks import answer

from acceptance import resources
from acceptance.core.plan import Plan
from acceptance.core.verdict import Verdict, covers
from acceptance.reports.summary import stale_waivers
from acceptance.run import planning, profile
from acceptance.session import context
from acceptance.station.options import Options
from selftest import drawn_runs

# All cases are one test, 13 s of processor: many times that beside other work.
pytestmark = pytest.mark.timeout(900)
FILES = sorted(resources.locate("machines").glob("*.toml"))
PROFILES = tuple(profile.read(resources.locate("profiles.toml")))
CASES = tuple(itertools.product(FILES, PROFILES, (False, True)))
# What a file may leave out, by its key; `cpuburn` names a burn program of the site's.
MORE = {
    "cpu": '[cpu]\nsockets = 2\ncores = 16\nthreads = 32\ncpuburn = "burnP6"\n',
    "memory": "[memory]\ntotal_gib = 128\n[[memory.dimm]]\nslot = 'A1'\nsize_gib = 128\n",
    "disk": '[[disk]]\nmodel = "Samsung SSD 990 PRO 2TB"\nsize_gb = 2000\ncount = 2\n',
    "scratch": '[[scratch]]\npath = "/data"\nwrite_gib = 40\n',
    "network": '[[network]]\nname = "ens7"\nspeed_mbps = 100000\n[[network]]\nname = "mlx5_0/1"\n',
    "system": '[system]\nboard = "a board"\n',
}
_COMMENT = re.compile(r"(?:^# \[(?:.*\n)(?:#.*\n?)*)", re.MULTILINE)


def filled_in(file: Path) -> str:
    """The text of a machine file with its commented tables, and those that it has not."""
    text = _COMMENT.sub(
        lambda block: re.sub("^# ?", "", block[0], flags=re.MULTILINE),
        file.read_text(encoding="utf-8"),
    )
    declared = tomllib.loads(text)
    return "\n".join([text, *(more for key, more in MORE.items() if key not in declared)])


@pytest.fixture(autouse=True)
def collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real checks, collected once for all plans."""
    found = answer()

    @contextlib.contextmanager
    def collected(_: Path) -> Iterator[Callable[[], context.Answer]]:
        yield lambda: found

    monkeypatch.setattr(planning, "start_collection", collected)


def plan_of(file: Path, name: str, filled: bool, folder: Path) -> Plan:
    """The plan for the declared machine, as `rigproof plan --as` makes it."""
    if filled:
        file = _written(folder / file.name, filled_in(file))
    return planning.prepare(Options(file, profile=name, as_declared=True, sheets=Path("none"))).plan


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def box_of(file: Path) -> Box:
    """What was published of such a machine."""
    return BOXES.get(file.name) or Box(file.name, "", 0, None)


def judged(file: Path, plan: Plan, *, as_root: bool) -> Verdict:
    """A sound run of this plan: values drawn about what such machines gave, judged by the fold."""
    made = drawn_runs.made(box_of(file), plan, virtual=False)
    dice = random.Random(f"{file.name} {plan.profile}")
    return drawn_runs.judged(made, drawn_runs.draw(made, dice), as_root=as_root)


@each("case", CASES, told=lambda case: f"{case[0].stem}, {case[1]}{', filled in' * case[2]}")
def test_a_sound_machine_passes(case: tuple[Path, str, bool], tmp_path: Path) -> None:
    file, name, filled = case
    plan = plan_of(file, name, filled, tmp_path)
    assert (plan.gaps, plan.scope) == ((), "full")
    for as_root in (True, False):
        found = judged(file, plan, as_root=as_root)
        assert (found.verdict, found.of_kind("fail"), found.of_kind("error")) == ("PASS", (), ())
    waived = {
        check.id
        for check in plan.checks
        for due in check.due
        for one in plan.waivers
        if one.skip is not None and covers(one, check.id, due)
    }
    skipped = {one.check for one in found.of_kind("waived")}
    assert (skipped, stale_waivers(found)) == (waived, ())  # a plain user skips those alone


def test_together_they_plan_every_check(tmp_path: Path) -> None:
    """So that no check is left out of these runs: each is due on some machine in some profile."""
    planned = {
        check.id
        for file, name, filled in CASES
        if filled
        for check in plan_of(file, name, filled, tmp_path).checks
    }
    assert {check.id for check in answer().checks} - planned == set()


def test_what_is_missing_is_no_pass(tmp_path: Path) -> None:
    """The values of a sound run are all needed: without those of any one check it is no PASS."""
    (file,) = (file for file in FILES if file.name == "2x3090ti-bridge.toml")
    plan = plan_of(file, "accept", True, tmp_path)
    made = drawn_runs.made(box_of(file), plan, virtual=False)
    sound = drawn_runs.draw(made, random.Random(1))
    for check in plan.checks:
        left = {key: None if key[0] == check.id else value for key, value in sound.items()}
        assert drawn_runs.judged(made, left).verdict == "UNJUDGED", check.id
