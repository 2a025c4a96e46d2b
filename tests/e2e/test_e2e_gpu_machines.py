"""Every described machine through a whole run on the host: what a right harness concludes of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import fake_driver
import pytest
from gpu_box import PROGRAMS, GpuBox
from rig import Rig
from run_left import Run

from acceptance.judge.record import ToolRan
from selftest import fault

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

HEALTHY = ["2x4090", "2x3090ti-bridged", "8xh100", "mixed-models", "1xh200-vm", "2xh200-vm"]


def measured(run: Run) -> dict[tuple[str, str], Any]:
    """What verdict.json holds of each measurement and component."""
    return {
        (one["measurement"], one["component"]): one for check in run.verdict["checks"] for one in check["measurements"]
    }


def tools(run: Run) -> set[str]:
    """The tools that ran."""
    return {Path(body.argv[0]).name for body in run.bodies(ToolRan)}


def test_every_description_is_tried() -> None:
    listed = tomllib.loads((fake_driver.DESCRIPTIONS / "INDEX.toml").read_text(encoding="utf-8"))["machine"]
    faulty = {one.fault.machine for one in fault.read() if one.fault.machine}
    assert {one["path"].removesuffix(".json") for one in listed} == {*HEALTHY, *faulty}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_machine_passes(rig: Rig, library: Path, name: str) -> None:
    run = GpuBox(rig, library, name).accept()
    run.assert_agrees()
    assert run.texts("violations") + run.texts("unjudged") == ""
    assert run.verdict["verdict"] == "PASS"
    assert set(run.outcomes().values()) == {"pass"}
    assert tools(run) == set(PROGRAMS) - ({"p2pBandwidthLatencyTest"} if name == "1xh200-vm" else set())
    told, notes = measured(run), "\n".join(run.verdict["notes"])
    if name == "2x4090":
        # It has no peer access, and that is as it should be; its copies between GPUs are not due.
        assert (told["p2p_supported", "gpu0->gpu1"]["value"], told["p2p_supported", "gpu0->gpu1"]["limit"]["high"]) == (
            0,
            0,
        )
        assert ("copy_d2d_read", "gpu0->gpu1") not in told
        assert ("gpu_ecc_uncorrected", "gpu0") not in told
    elif name == "2x3090ti-bridged":
        assert told["nvlink_active", "gpu1"]["value"] == 4
        assert told["copy_h2d", "gpu0"]["limit"]["low"] == pytest.approx(0.75 * 15.75, abs=0.1)
        assert "gpu0" in notes
        assert "Xorg" in notes
    elif name == "mixed-models":
        assert [told["gpu_sm_count", gpu]["limit"]["low"] for gpu in ("gpu0", "gpu1")] == [128, 82]
        assert ("gpu_burn_ratio_float", "gpu0") not in told
    elif name == "8xh100":
        assert sum(1 for measurement, _ in told if measurement == "copy_d2d_read") == 56
        assert [told["nvlink_active", f"gpu{index}"]["value"] for index in range(8)] == [18] * 8
