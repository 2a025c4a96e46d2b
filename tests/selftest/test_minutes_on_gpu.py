"""The times of whole profiles for a GPU machine: the table. The runs themselves need a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from cases import each
from runs import unpacked

from selftest import minutes_on_gpu

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/recordings/h200/runs"


@pytest.fixture
def smoke(tmp_path: Path) -> minutes_on_gpu.Timed:
    """A recorded run of two GPUs, of which no verdict was kept."""
    folder = unpacked(RECORDED / "2xh200-host-smoke-whole", tmp_path / "run")
    found = minutes_on_gpu.of_folder(folder)
    assert found is not None
    return found


def test_a_run_is_told_with_its_plan_its_goal_and_its_alarms(smoke: minutes_on_gpu.Timed) -> None:
    assert (smoke.profile, smoke.gpus, smoke.goal_s) == ("smoke", 2, 75.0)
    assert smoke.seconds == pytest.approx(270.0, abs=2.0)
    assert smoke.alarms == ("run has no verdict",)
    row = smoke.row()
    assert row.startswith("| smoke | 2 | ")
    assert row.endswith(" | 75 | run has no verdict |")
    share = smoke.planned_s / smoke.seconds - 1.0
    assert f" | {smoke.planned_s:.0f} | {smoke.seconds:.0f} | {100.0 * share:+.0f} % | " in row


def test_the_table_names_the_longest_checks_first(smoke: minutes_on_gpu.Timed) -> None:
    lines = minutes_on_gpu.table([smoke, smoke])
    assert lines[2:4] == [smoke.row()] * 2
    begin = lines.index("## smoke") + 4
    assert [line.split(" | ")[0] for line in lines[begin : begin + 2]] == [
        "| `compute.gemm_alone`",
        "| `burn.gpu_burn[float]`",
    ]
    assert lines[begin].endswith(" | 51.9 |")
    assert len(lines) == begin + minutes_on_gpu.LONGEST


@each("text, found", [("smoke=5,accept=2", {"smoke": 5, "accept": 2}), ("train=0", {"train": 0})])
def test_how_often_each_profile_runs(text: str, found: dict[str, int]) -> None:
    assert minutes_on_gpu.wanted(text) == found


@each("text", ["", "smoke", "smoke=-1", "smoke=1.5", "nothing=1", "smoke=1;accept=2"])
def test_what_names_no_profile_and_count_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no PROFILE=COUNT"):
        minutes_on_gpu.wanted(text)


def test_a_folder_without_a_run_has_no_times(tmp_path: Path) -> None:
    assert minutes_on_gpu.of_folder(tmp_path) is None
