"""Every described machine through a whole run on the host: what a right harness
concludes of each.
"""

from __future__ import annotations

import signal
import time
import tomllib
from pathlib import Path
from typing import Any

import fake_driver
import fakes
import pytest
import test_e2e_profiles
from gpu_box import PROGRAMS, Document, GpuBox
from rig import Rig, processes, wait_for
from run_left import Run

from acceptance import resources
from acceptance.core.evidence import ToolRan
from acceptance.core.parts import Function
from acceptance.core.record import Event, SessionEnded
from acceptance.core.spans import CheckSpans
from acceptance.journal import reader
from acceptance.process import orphans
from selftest import fault

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

LOST = "gpu-lost-mid-run"  # the self-test plays one in its long form only
HEALTHY = ["2x3090ti-bridged", "mixed-models", "2xh200-vm"]  # and those of `test_e2e_profiles`


def measured(run: Run) -> dict[tuple[str, str], Any]:
    """What verdict.json holds of each measurement and component."""
    return {
        (one["measurement"], one["component"]): one
        for check in run.verdict["checks"]
        for one in check["measurements"]
    }


def tools(run: Run) -> set[str]:
    """The tools that ran."""
    return {Path(body.argv[0]).name for body in run.bodies(ToolRan)}


def test_every_description_is_tried() -> None:
    listed = tomllib.loads((fake_driver.DESCRIPTIONS / "INDEX.toml").read_text(encoding="utf-8"))[
        "machine"
    ]
    faulty = {one.fault.machine for one in fault.read() if one.fault.machine}
    assert {one["path"].removesuffix(".json") for one in listed} == {
        *HEALTHY,
        *test_e2e_profiles.MACHINES,
        *faulty,
        LOST,
    }


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_passes(rig: Rig, library: Path, name: str) -> None:
    box = GpuBox(rig, library, name)
    run = box.accept()
    if "watch.sampled" in run.texts("unjudged"):
        run = box.accept()  # the machine that tests was too busy for its own watch, which it says
    run.assert_agrees()
    assert run.texts("violations") + run.texts("unjudged") == ""
    assert run.verdict["verdict"] == "PASS"
    assert set(run.outcomes().values()) == {"pass"}
    assert tools(run) == set(PROGRAMS)
    told, notes = measured(run), "\n".join(run.verdict["notes"])
    if name == "2x3090ti-bridged":
        assert told["nvlink_active", "gpu1"]["value"] == 4
        assert told["copy_h2d", "gpu0"]["limit"]["low"] == pytest.approx(0.75 * 15.75, abs=0.1)
        assert "gpu0" in notes
        assert "Xorg" in notes
    elif name == "mixed-models":
        assert [told["gpu_sm_count", gpu]["limit"]["low"] for gpu in ("gpu0", "gpu1")] == [128, 82]
        assert ("gpu_burn_ratio_tensor", "gpu0") not in told


def test_a_sheet_of_the_site_decides(rig: Rig, library: Path) -> None:
    """Of a card that has one multiprocessor less: the very card that passes by rigproof's sheet."""
    box = GpuBox(rig, library, "2x4090")
    text = (resources.locate("models") / "geforce-rtx-4090.toml").read_text(encoding="utf-8")
    sheet = rig.home / "sheets/models/own.toml"
    sheet.parent.mkdir(parents=True)
    own = text.replace("sm = 128", "sm = 127").replace("= 16384", "= 16256")
    sheet.write_text(own, encoding="utf-8")
    for one in (sheet, sheet.parent, sheet.parents[1]):
        one.chmod(0o755 if one.is_dir() else 0o644)
    ours = box.accept(only="gpu", burn=1)
    assert ours.verdict["verdict"] == "PASS", ours.out
    theirs = box.accept("--sheets", str(sheet.parents[1]), only="gpu", burn=1)
    theirs.assert_agrees()
    assert theirs.verdict["verdict"] == "FAIL"
    assert "gpu_sm_count on gpu1: measured 128, limit = 127" in theirs.texts("violations")
    (overlay,) = theirs.verdict["limits"]["overlay"]
    assert (overlay["file"], overlay["replaces"]) == ("models/own.toml", True)
    assert {row["measurement"] for row in theirs.verdict["limits"]["looser"]} >= {"gpu_sm_count"}
    assert "looser by the site's sheets" in theirs.out
    assert ours.verdict["limits"]["digest"] != theirs.verdict["limits"]["digest"]


def test_processors_are_loaded_while_the_gpus_are(rig: Rig, library: Path) -> None:
    box = GpuBox(rig, library, "2x4090")
    text = fakes.write(rig.fakes, "stress-ng", "healthy").with_name("stress-ng.TEXT")
    fakes.program(rig.fakes, "stress-ng", f"sleep 10; cat '{text}'")
    run = box.accept(only="gpu.present,gpu.granted,burn.gpu_burn[tensor],cpu.stress_ng", burn=1)
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS", run.out
    entries = reader.read(run.path).entries
    # A busy machine starts either session first.
    later = max(CheckSpans(entries).spans, key=lambda one: one.began_s)
    running = CheckSpans(entries).at(later.boot, later.began_s)
    assert set(running) == {"burn.gpu_burn[tensor]", "cpu.stress_ng"}
    ended = {end.session: end.complete for end in run.bodies(SessionEnded)}
    assert ended == {"host-before": True, "gpu-load": True, "host-load": True}


def test_a_stop_ends_both_sessions(rig: Rig, library: Path) -> None:
    box = GpuBox(rig, library, "2x4090")
    fakes.write(rig.fakes, "stress-ng", "hangs")
    only = "gpu.present,gpu.granted,burn.gpu_burn[tensor],cpu.stress_ng,cpu.gemm[f64]"
    argv = rig.argv("--profile", "accept", only=only, burn=1, machine=False)
    before, began = rig.runs(), time.monotonic()
    started = rig.start(argv, program=box.program)
    folder = rig.started_run(before)
    wait_for(lambda: processes(folder.name, "fakes/stress-ng"))
    started.send_signal(signal.SIGTERM)
    run = rig.finish(started, before, began)
    run.assert_agrees()
    assert (run.code, run.verdict["verdict"]) == (3, "UNJUDGED")
    assert orphans.find(folder.name) == {}
    assert "cpu.stress_ng: did not finish: stopped by SIGTERM" in run.texts("unjudged")


def test_a_gpu_lost_in_the_middle_fails_the_check_that_ran(rig: Rig, library: Path) -> None:
    def later(document: Document) -> None:
        document["timeline"][0]["after_s"] = 1.0

    box = GpuBox(rig, library, LOST, edit=later)
    run = box.accept_until("burn.gpu_burn[tensor]", only="gpu.present,gpu.granted,burn", burn=6)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    events = [event for event in run.bodies(Event) if event.source == "nvml"]
    assert {(event.kind, event.code, event.component) for event in events} == {
        ("xid", 79, Function("0000:41:00.0")),
        ("gpu-lost", "nvml", Function("0000:41:00.0")),
    }
    lines = run.texts("violations").splitlines()
    for kind in ("xid 79 on 0000:41:00.0", "gpu-lost nvml on 0000:41:00.0"):
        assert any(line.startswith(f"burn.gpu_burn[tensor]: {kind}: ") for line in lines), lines
    assert all("gpu0" not in line for line in lines)
