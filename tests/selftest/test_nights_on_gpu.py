"""The nights for a GPU machine: what counts as an alarm, and the table.

The nights themselves need a GPU.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import each
from msgspec.structs import replace
from nights import night, record

from acceptance.history import baseline_file
from acceptance.history.night import Night
from acceptance.history.trend import TrendPoint, TrendSeries
from acceptance.journal import clock
from selftest import nights_on_gpu


def course(measurement: str, *values: float) -> TrendSeries:
    points = [
        TrendPoint(f"run-{day}", day, value, None, False, False, True, 1)
        for day, value in enumerate(values)
    ]
    return TrendSeries("gemm.gpu", measurement, "gpu0", "TFLOP/s", "GPU-a", tuple(points))


def test_what_moved_farthest_comes_first_and_what_stood_still_is_counted() -> None:
    found = [
        course("steady", 5.0, 5.0, 5.0),
        course("a_little", 100.0, 101.0, 100.0),
        course("much", 100.0, 90.0),
    ]
    _, _, *rows = nights_on_gpu.moved(
        [*found, course("once", 7.0), course("from_zero", 0.0, 0.0, 3.0)]
    )
    assert rows == [
        "| `gemm.gpu` `from_zero` gpu0 | 0 0 3 | TFLOP/s | inf |",
        "| `gemm.gpu` `much` gpu0 | 100 90 | TFLOP/s | 10.5 |",
        "| `gemm.gpu` `a_little` gpu0 | 100 101 100 | TFLOP/s | 1 |",
        "",
        "1 more were the same each night.",
    ]


@each(
    "verdict, told",
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


def test_a_run_without_a_verdict_or_none_at_all_is_an_alarm(tmp_path: Path) -> None:
    assert nights_on_gpu.alarms(tmp_path) == (f"{tmp_path.name} has no verdict",)
    assert nights_on_gpu.alarms(None) == ("no run came about",)


class Box:
    """A machine with a GPU, whose runs are made up: each takes the next of these nights, None
    where no run comes about.
    """

    def __init__(
        self, out: Path, nights: list[Night | None], baseline: SimpleNamespace | None = None
    ) -> None:
        self.out, self.baseline = out, baseline
        self._nights = iter(nights)

    def rigproof(self, verb: str, *typed: str) -> tuple[int, float]:
        if verb == "baseline":
            self.baseline = SimpleNamespace(
                certificate=SimpleNamespace(machine=SimpleNamespace(run_id=Path(typed[1]).name))
            )
            return 0, 0.1
        made, file = next(self._nights), Path(typed[typed.index("--run-dir-file") + 1])
        file.unlink(missing_ok=True)
        if made is None:
            return 2, 0.1
        folder = self.out / made.run_id
        folder.mkdir(parents=True)
        (folder / "verdict.json").write_text(json.dumps({"verdict": made.verdict, "warnings": []}))
        file.write_text(f"{folder}\n")
        machine = clock.machine_id()
        record(self.out, replace(made, machine_id=machine, folder=made.run_id))
        return {"PASS": 0, "UNJUDGED": 4 if made.postponed else 3}[made.verdict], 1.0

    def main(self, monkeypatch: pytest.MonkeyPatch) -> int:
        monkeypatch.setattr(nights_on_gpu, "rigproof", self.rigproof)
        monkeypatch.setattr(baseline_file, "read", lambda *_: self.baseline)
        monkeypatch.setattr(Path, "glob", lambda self, pattern: iter([self]))
        return nights_on_gpu.main(["--out", str(self.out), "--machine", "box.toml"])


SKIPPED = night(3, None, verdict="UNJUDGED", postponed=True)


@pytest.mark.parametrize(
    ("nights", "code", "told"),
    [
        ([night(number) for number in range(4)], 0, "3 of 3 nights after the baseline, 0 alarms"),
        ([night(0), night(1), SKIPPED], 1, "1 of 3 nights after the baseline, 1 alarms"),
        ([night(0), night(1), None], 1, "1 of 3 nights after the baseline, 1 alarms"),
        (
            [night(0), night(1, verdict="UNJUDGED"), night(2)],
            1,
            "1 of 3 nights after the baseline, 1 alarms",
        ),
        ([None], 1, "accept --profile nightly: exit 2 after 0 s, 1 alarms"),
        ([night(0, verdict="UNJUDGED")], 1, "accept --profile nightly: exit 3 after 1 s, 1 alarms"),
    ],
)
def test_nights_that_measured_something_count(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    nights: list[Night | None],
    code: int,
    told: str,
) -> None:
    assert Box(tmp_path / "out", nights).main(monkeypatch) == code
    assert capsys.readouterr().out.splitlines()[-1] == told


def test_it_goes_on_where_it_was_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(
        tmp_path, [night(0, verdict="UNJUDGED"), night(1), night(2), SKIPPED, night(4), night(5)]
    )
    assert [box.main(monkeypatch) for _ in range(3)] == [1, 1, 0]
    assert box.main(monkeypatch) == 0  # nothing is left to do


def test_an_alarm_of_an_earlier_start_is_one_still(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, [night(number) for number in range(4)])
    assert box.main(monkeypatch) == 0
    (tmp_path / night(2).run_id / "verdict.json").write_text(
        json.dumps({"verdict": "PASS", "warnings": ["hot"]})
    )
    assert box.main(monkeypatch) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 of 3 nights after the baseline, 1 alarms"
    shutil.rmtree(tmp_path / night(2).run_id)
    assert box.main(monkeypatch) == 1
    assert "is gone" in (tmp_path / nights_on_gpu.NIGHTS).read_text()


def test_a_remark_on_the_accepted_run_is_an_alarm_at_every_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, [night(number) for number in range(4)])
    assert box.main(monkeypatch) == 0
    (tmp_path / night(0).run_id / "verdict.json").write_text(
        json.dumps({"verdict": "PASS", "warnings": ["hot"]})
    )
    assert box.main(monkeypatch) == 1
    assert "hot" in (tmp_path / nights_on_gpu.NIGHTS).read_text()


def test_a_history_without_the_run_of_the_baseline_counts_no_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    box = Box(tmp_path, [night(number) for number in range(4)])
    assert box.main(monkeypatch) == 0
    box.baseline = SimpleNamespace(
        certificate=SimpleNamespace(machine=SimpleNamespace(run_id="another"))
    )
    assert box.main(monkeypatch) == 1
    assert "does not hold another, the run of the baseline" in capsys.readouterr().err
