"""The self-test's part for a GPU machine: the interpreter that puts faults in, and the program
around the runs, which need a GPU.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from junitparser import JUnitXml, Skipped
from raising import raising

from selftest import on_gpu
from selftest.injection import Injection
from selftest.row import FalseAlarms, NotOffered, Row


def test_the_interpreter_starts_that_load_with_the_fault_and_every_other_as_it_is(
    tmp_path: Path,
) -> None:
    python = on_gpu.interpreter(tmp_path / "env", "vram", "bit")

    def words(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(python), *more], capture_output=True, text=True, timeout=60)

    told = words("-c", "import sys, acceptance; print(sys.executable, *sys.argv[1:])", "a", "b c")
    assert told.stdout.split() == [str(python), "a", "b", "c"]
    # Neither has a GPU here: what is looked at is that the option came through, and to that load
    # alone.
    wrong = words("-m", "acceptance.loads", '{"load":"vram","seconds":1}')
    assert "GPU" in wrong.stderr or "torch" in wrong.stderr
    assert "seconds" in words("-m", "acceptance.loads", "vram").stderr
    python.write_text(
        python.read_text(encoding="utf-8").replace("bit", "nothing"), encoding="utf-8"
    )
    assert "'nothing'" in words("-m", "acceptance.loads", '{"load":"vram","seconds":1}').stderr
    other = words("-m", "acceptance.loads", '{"load":"gpu_copy","seconds":1}').stderr
    assert "'nothing'" not in other


def played(monkeypatch: pytest.MonkeyPatch, gpus: int) -> list[str]:
    """A machine with so many GPUs, on which every fault is caught: the names of those played."""
    names: list[str] = []

    def play(injection: Injection, _home: Path, _gpus: int, _seconds: float) -> on_gpu.Shown:
        names.append(injection.name)
        row = Row(injection.family, injection.name, "load", True, injection.check)
        lacking = [NotOffered("burn-bit f8", "no")] if injection.name == "burn-bit" else []
        return [row], lacking

    def clean(home: Path, runs: int, _machine: Path | None) -> FalseAlarms:
        home.mkdir(parents=True, exist_ok=True)
        return FalseAlarms("real runs", runs, 0)

    monkeypatch.setattr(on_gpu, "own_gpus", lambda: gpus)
    monkeypatch.setattr(on_gpu, "play", play)
    monkeypatch.setattr(on_gpu, "clean", clean)
    return names


def test_on_two_gpus_all_are_played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = played(monkeypatch, 2)
    assert on_gpu.main(["--out", str(tmp_path)]) == 0
    assert names == [one.name for one in on_gpu.read()]
    assert "1 not offered here" in capsys.readouterr().out.splitlines()[-1]


def test_on_one_gpu_what_needs_two_is_named_on_every_view(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = played(monkeypatch, 1)
    assert on_gpu.main(["--out", str(tmp_path)]) == 0
    left_out = {one.name for one in on_gpu.read() if one.gpus > 1}
    assert left_out
    assert set(names) == {one.name for one in on_gpu.read()} - left_out
    shown = capsys.readouterr().out
    assert f"{len(left_out) + 1} not offered here" in shown.splitlines()[-1]
    (folder,) = (tmp_path / on_gpu.FOLDER).iterdir()
    junit = JUnitXml.fromstring((folder / "selftest.xml").read_bytes())
    skipped = {
        case.name
        for suite in junit
        for case in suite
        if any(isinstance(one, Skipped) for one in case.result)
    }
    assert skipped == {*left_out, "burn-bit f8"}
    for name in left_out:
        assert name in shown
        assert name in (folder / "selftest.md").read_text()


def test_a_word_that_no_fault_holds_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = played(monkeypatch, 2)
    assert on_gpu.main(["--out", str(tmp_path), "--only", "colective"]) == 2
    assert "colective" in capsys.readouterr().err
    assert names == []


def test_what_cannot_be_played_is_missed_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        on_gpu, "_accept", raising(subprocess.TimeoutExpired("rigproof", on_gpu.LIMIT_S))
    )
    monkeypatch.setattr(on_gpu, "interpreter", lambda *_: Path("python"))
    ((row,), left_out) = on_gpu.play(on_gpu.read()[0], tmp_path, 1, 7.0)
    assert not row.caught
    assert "TimeoutExpired" in row.wrong
    assert left_out == []
