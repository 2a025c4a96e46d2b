"""The nights for a GPU machine: what counts as an alarm, and the table. The nights themselves need a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance.judge.course import Course, Point
from selftest import nights_on_gpu


def course(measurement: str, *values: float) -> Course:
    points = [Point(f"run-{day}", day, value, None, False, False, True, 1) for day, value in enumerate(values)]
    return Course("gemm.gpu", measurement, "gpu0", "TFLOP/s", "GPU-a", tuple(points))


def test_what_moved_farthest_comes_first_and_what_stood_still_is_counted() -> None:
    found = [course("steady", 5.0, 5.0, 5.0), course("a_little", 100.0, 101.0, 100.0), course("much", 100.0, 90.0)]
    _, _, *rows = nights_on_gpu.moved([*found, course("once", 7.0), course("from_zero", 0.0, 0.0, 3.0)])
    assert rows == [
        "| `gemm.gpu` `from_zero` gpu0 | 0 0 3 | TFLOP/s | inf |",
        "| `gemm.gpu` `much` gpu0 | 100 90 | TFLOP/s | 10.5 |",
        "| `gemm.gpu` `a_little` gpu0 | 100 101 100 | TFLOP/s | 1 |",
        "",
        "1 more were the same each night.",
    ]


@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        ({"verdict": "PASS", "warnings": []}, ()),
        ({"verdict": "PASS", "warnings": ["hot"]}, ('remarked: "hot"',)),
        ({"verdict": "UNJUDGED", "warnings": []}, ("the verdict is UNJUDGED",)),
    ],
)
def test_whatever_is_said_against_a_sound_machine_is_an_alarm(
    tmp_path: Path, verdict: dict[str, object], told: tuple[str, ...]
) -> None:
    (tmp_path / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    assert nights_on_gpu.alarms(tmp_path) == told


def test_where_there_is_no_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    assert nights_on_gpu.main(["--out", str(tmp_path), "--machine", "machine.toml"]) == 2
    assert "no GPU" in capsys.readouterr().err
