"""Every described machine through a whole run on the host: what a right harness
concludes of each.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import fake_driver
import pytest
import test_e2e_profiles
from gpu_box import PROGRAMS, GpuBox
from rig import Rig
from run_left import Run

from acceptance import resources
from acceptance.core.evidence import ToolRan
from selftest import fault

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

LOST = "gpu-lost-mid-run"  # tests/nvml reads it; the self-test loses GPUs of other machines
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
