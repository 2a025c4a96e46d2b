"""Whole runs on real GPUs, recorded: each is read back and judged again as its index says,
fixtures/recordings/*/runs/INDEX.toml.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
import statement
from runs import unpacked, write_views

from acceptance.__main__ import main
from acceptance.core.parts import Gpu
from acceptance.core.record import Measured
from acceptance.core.verdict import Verdict
from acceptance.diagnosis.gpu_history import histories
from acceptance.journal import reader, segment
from acceptance.journal import run as journal_run

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = ROOT / "fixtures/recordings"
RUNS = sorted(RECORDINGS.glob("*/runs"))
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/verdict.schema.json").read_bytes())
INDEX: list[dict[str, Any]] = [
    {"folder": folder, **entry}
    for folder in RUNS
    for entry in tomllib.loads((folder / "INDEX.toml").read_text())["run"]
]


@pytest.fixture(scope="module", params=INDEX, ids=lambda run: run["name"])
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    """What the index says of a run, and a copy of its folder as the harness left it."""
    entry: dict[str, Any] = request.param
    folder = tmp_path_factory.mktemp(entry["name"]) / "run"
    unpacked(entry["folder"] / entry["name"], folder)
    return entry, folder


@pytest.fixture(scope="module")
def written(recorded: tuple[dict[str, Any], Path]) -> Verdict:
    """The verdict on the run, whose files lie in its folder now."""
    return write_views(recorded[1]).verdict


def test_every_folder_is_indexed() -> None:
    found = {path for folder in RUNS for path in folder.iterdir() if path.is_dir()}
    assert found == {entry["folder"] / entry["name"] for entry in INDEX}
    assert len({entry["name"] for entry in INDEX}) == len(INDEX)  # frozen by name


def test_a_recorded_run_is_judged_as_it_was(
    recorded: tuple[dict[str, Any], Path], written: Verdict
) -> None:
    (entry, folder), verdict = recorded, written
    assert (verdict.verdict, verdict.scope) == (entry["verdict"], entry["scope"])
    assert len(verdict.of_kind("fail", "error", "skip")) >= len(entry["reasons"])
    suites = junitparser.JUnitXml.fromfile(str(folder / "junit.xml"))
    assert {case.name for suite in suites for case in suite} >= {one.id for one in verdict.checks}
    assert entry["card"] in (folder / "report.html").read_text()
    content = json.loads((folder / "verdict.json").read_bytes())
    jsonschema.Draft202012Validator(SCHEMA).validate(content)
    bodies = [one.body for one in reader.read(folder).entries if isinstance(one.body, Measured)]
    values = {body.measurement: body.value for body in bodies if body.component == Gpu(0)}
    for name, value in entry["figures"].items():
        assert values[name] == pytest.approx(value, rel=1e-3)


@pytest.mark.usefixtures("written")
def test_a_recorded_run_says_what_it_said(
    recorded: tuple[dict[str, Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    entry, folder = recorded
    code = main(["judge", str(folder)])
    said = statement.of(folder, capsys.readouterr().out)
    assert code == said["exit_code"]
    if os.environ.get("RIGPROOF_FREEZE"):
        frozen = json.loads(statement.RECORDED.read_bytes()) if statement.RECORDED.is_file() else {}
        text = json.dumps(
            frozen | {entry["name"]: said}, indent=1, sort_keys=True, ensure_ascii=False
        )
        statement.RECORDED.write_text(f"{text}\n", encoding="utf-8")
    assert said == json.loads(statement.RECORDED.read_bytes())[entry["name"]]


def test_the_telemetry_is_whole(recorded: tuple[dict[str, Any], Path]) -> None:
    entry, folder = recorded
    hot = any("gpu_temperature_margin" in reason for reason in entry["reasons"])
    if not (folder / reader.GPU_TELEMETRY).is_file():
        return  # a run that was stopped before its GPUs were loaded is kept without it
    found = histories(segment.read_segment(folder / reader.GPU_TELEMETRY).entries)
    for history in found.values():
        assert history.period() == pytest.approx(0.2, rel=0.1)
        assert history.maximum("power_w") > 600
        assert history.under_load("link_gen") == 5
        assert history.under_load("link_width") == 16
        assert history.growth("ecc_uncorrected") == 0
        assert history.seconds("reason_hw_slowdown") == 0
    assert hot == any(one.minimum("temperature_margin_c") <= 0 for one in found.values())
    assert hot == any(one.seconds("reason_sw_thermal") > 0 for one in found.values())


def test_a_recorded_night_was_held_against_its_baseline_without_a_word() -> None:
    verdict = journal_run.read(RECORDINGS / "h200/runs/1xh200-nightly-after").verdict
    judged = [one for check in verdict.checks for one in check.judged]
    held = {one.due.measurement for one in judged if one.due.past is not None}
    assert {"gemm_bf16", "gemm_f64", "burn_f8", "copy_h2d", "vram_copy", "gpu_temperature"} <= held
    assert len([one for one in judged if one.due.past is not None]) > 50
    assert not any(one.drift and (one.drift.outside or one.drift.unsteady) for one in judged)
    assert verdict.of_kind("fail", "warn") == ()
