"""The programs that a plan needs: the table has what the checks start, and says what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import journals
import pytest
from real_checks import collected

from acceptance.core.parts import CPU, MEMORY, Gpu, Part
from acceptance.core.plan import Plan
from acceptance.process import command
from acceptance.run import missing_programs
from acceptance.run.missing_programs import OF_LOADS, ON_HOST, TORCH
from acceptance.wording import words

SUITES = Path(missing_programs.__file__).parents[1] / "suites"
HELPERS = {"nice", "nvidia-smi"}  # of every system, and of the driver


def told(plan: Plan, *, in_place: bool = True) -> list[str]:
    return [words.message(one) for one in missing_programs.find(plan, in_place=in_place)]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed."""

    def find(program: str, package: str | None = None) -> str:
        raise command.ProgramMissing("program_missing", program=program, package=package or "")

    monkeypatch.setattr(command, "find", find)
    monkeypatch.setattr(missing_programs.importlib.util, "find_spec", lambda _: None)


PLAN = journals.plan(
    journals.check("cpu.stress_ng", journals.due("stress_ng_failures", CPU)),
    journals.check("storage.smart_health", journals.due("disk_faults", Part("disk", "sda"))),
    journals.check("storage.write", journals.due("storage_write", Part("disk", "sda"))),
    journals.check("burn.gpu_burn[float]", journals.due("gpu_burn_errors", Gpu(0))),
    journals.check("together.burn", journals.due("burn_f32", Gpu(0))),
)


ALL = "(in a checkout `sudo make tools` installs all of them)"


@pytest.mark.usefixtures("bare")
def test_each_is_named_with_its_checks_and_how_to_get_it() -> None:
    assert told(PLAN) == [
        f"smartctl is not installed: install it with `sudo apt install smartmontools` {ALL} "
        "(needed by storage.smart_health)",
        f"stress-ng is not installed: install it with `sudo apt install stress-ng` {ALL} "
        "(needed by cpu.stress_ng, together.burn)",
        f"stressapptest is not installed: install it with `sudo apt install stressapptest` {ALL} "
        "(needed by together.burn)",
        f"fio is not installed: install it with `sudo apt install fio` {ALL} (needed by "
        "storage.write)",
        "not installed here: gpu-burn, torch: the container has them (`sudo apt install "
        "docker.io`; in a checkout `sudo make engine`); without it put them on PATH; torch comes "
        "with `rigproof[gpu]`, installed in place of rigproof (needed by "
        "burn.gpu_burn[float], together.burn)",
    ]
    assert [line.split(" ")[0] for line in told(PLAN, in_place=False)] == ["smartctl"]


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("measurement", "needed"), [("dimm_count", 1), ("memory_total", 0)])
def test_modules_are_read_where_they_are_declared(measurement: str, needed: int) -> None:
    plan = journals.plan(journals.check("inventory.memory", journals.due(measurement, MEMORY)))
    assert len(told(plan)) == needed


@pytest.mark.usefixtures("bare")
def test_a_burn_without_gpus_needs_no_torch() -> None:
    plan = journals.plan(journals.check("together.burn", journals.due("burn_cpu", CPU)))
    assert not [line for line in told(plan) if TORCH in line]


def test_nothing_is_said_of_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda program, _=None: f"/usr/bin/{program}")
    monkeypatch.setattr(missing_programs.importlib.util, "find_spec", lambda _: object())
    assert told(PLAN) == []


def test_the_table_holds_what_the_checks_start() -> None:
    started = {
        name
        for file in SUITES.rglob("*.py")
        for name in re.findall(r'\.find\("([^"]+)"', file.read_text(encoding="utf-8"))
    }
    rows = (*ON_HOST, *OF_LOADS)
    assert started - HELPERS <= {program for program, _, _ in rows}
    ids = {check.id.partition("[")[0] for check in collected()}
    subjects = {one.partition(".")[0] for one in ids}
    assert {check for _, _, checks in rows for check in checks} <= ids | subjects
