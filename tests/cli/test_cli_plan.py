"""`rigproof plan --as FILE`: the plan of the declared machine, on a machine that is none of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from raising import raising

from acceptance import resources
from acceptance.__main__ import main
from acceptance.machine import gpu_selection
from acceptance.observe import inventory
from acceptance.run import missing_programs, planning, recall
from acceptance.station import preflight

MACHINES = resources.locate("machines")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine may be asked: not its parts, its engine, its nights, its programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("SLURM_JOB_ID", "1")

    for module, name in (
        (planning, "observe"),
        (inventory, "observe"),
        (planning, "power_limit_w"),
        (planning.Sensors, "find"),
        (planning.storage, "limited"),
        (planning.scratch, "find"),
        (recall.HistoryRecall, "with_usual_times"),
        (missing_programs, "find"),
        (preflight, "station_notice"),
        (gpu_selection, "refuse_outside"),
    ):
        monkeypatch.setattr(module, name, raising(AssertionError("this machine was asked")))


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of the plan."""
    assert main(["plan", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def test_it_shows_the_floors_of_an_h200_with_their_basis(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(capsys, "--as", str(MACHINES / "8xh200.toml"))
    floors = [line for line in lines if line.lstrip().startswith("gemm_bf16 on gpu0 to gpu7 >= ")]
    (floor,) = floors
    assert "x 989.4 (dense peak)" in floor
    assert "sheet of H200 SXM 141GB" in floor
    assert any(line.lstrip().startswith("copy_h2d on gpu0 to gpu7 >= 47.") for line in lines)
    assert any("collective_all_reduce on gpus >= " in line for line in lines)
    assert any(line.startswith("  together.burn ") and " s " in line for line in lines)


def test_what_is_declared_is_planned_and_what_is_not_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "box.toml"
    file.write_text('schema = 1\nname = "b"\ngpus = 0\n', encoding="utf-8")
    bare = shown(capsys, "--as", str(file))
    assert [line for line in bare if line.startswith("  cpu.")] == []
    more = "[cpu]\ncores = 4\nthreads = 8\nsockets = 1\n[memory]\ntotal_gib = 64\n"
    file.write_text(f'schema = 1\nname = "b"\ngpus = 0\n{more}', encoding="utf-8")
    whole = shown(capsys, "--as", str(file))
    assert [line.split()[0] for line in whole if line.startswith("  cpu.gemm[f64]")]
    left_out = "not declared, not planned: "
    said = [[line for line in one if line.startswith(left_out)] for one in (bare, whole)]
    assert set(said[1]) < set(said[0])
    assert not any(word in "".join(said[1]) for word in ("cpu.cores", "memory.total_gib"))


def test_a_file_that_declares_no_gpus_raises_no_alarm(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "box.toml"
    file.write_text('schema = 1\nname = "b"\n', encoding="utf-8")
    first, *lines = shown(capsys, "--as", str(file))
    assert first.startswith("profile accept: ")
    assert any(line.startswith("not declared, not planned: GPUs") for line in lines)


def test_other_options_of_a_plan_hold(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(MACHINES / "2x4090.toml")
    lines = shown(capsys, "--as", file, "--profile", "train", "--gpus", "1", "--only", "compute")
    assert any(line.endswith("(partial)") for line in lines)
    assert not any("gpu0" in line for line in lines if "gemm_bf16 on" in line)
    assert "训练" in "".join(shown(capsys, "--as", file, "--profile", "train", "--lang", "zh-CN"))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--as", "box.toml", "--machine", "box.toml"], "give --as or --machine"),
        (["--as", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--as", ""], "is empty"),
    ],
)
def test_a_mistake_is_a_usage_error(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["plan", *arguments])
    except SystemExit as left:  # argparse
        code = int(left.code or 0)
    assert code == 2
    assert told in capsys.readouterr().err
