"""Every described machine through a whole run on the host: what a right harness concludes of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import fake_driver
import pytest
from gpu_box import PROGRAMS, Document, GpuBox
from rig import Rig
from run_left import Run

from acceptance.judge.record import Event, ToolRan

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

HEALTHY = ["2x4090", "2x3090ti-bridged", "8xh100", "mixed-models", "1xh200-vm", "2xh200-vm"]
FAULTY = ["8xh200-one-dead-link", "gpu-lost-mid-run", "ecc-growing", "mig-on"]


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
    assert {one["path"].removesuffix(".json") for one in listed} == {*HEALTHY, *FAULTY}


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


def test_a_dead_nvlink_fails_by_its_gpu(rig: Rig, library: Path) -> None:
    run = GpuBox(rig, library, "8xh200-one-dead-link").accept()
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    before, after = run.texts("violations").splitlines()
    for name, line in (("link.nvlinks", before), ("watch.nvlinks", after)):
        assert line.startswith(f"{name}: nvlink_active on gpu5: measured 17 (18 links, down: 11), limit = 18")
    assert run.texts("unjudged") == ""


def test_a_gpu_lost_in_the_middle_fails_the_check_that_ran(rig: Rig, library: Path) -> None:
    def later(document: Document) -> None:
        document["timeline"][0]["after_s"] = 5.0  # in the burn, whatever the machine is at besides

    box = GpuBox(rig, library, "gpu-lost-mid-run", edit=later)
    run = box.accept(only="gpu.present,gpu.granted,burn", burn=6)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    events = [event for event in run.bodies(Event) if event.source == "nvml"]
    assert {(event.kind, event.code, event.component) for event in events} == {
        ("xid", 79, "0000:41:00.0"),
        ("gpu-lost", "nvml", "0000:41:00.0"),
    }
    lines = run.texts("violations").splitlines()
    for kind in ("xid 79 on 0000:41:00.0", "gpu-lost nvml on 0000:41:00.0"):
        assert any(line.startswith(f"burn.gpu_burn[float]: {kind}: ") for line in lines), lines
    assert all("gpu0" not in line for line in lines)


def test_ecc_errors_that_grow_fail(rig: Rig, library: Path) -> None:
    run = GpuBox(rig, library, "ecc-growing").accept(burn=4)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    told = run.texts("violations")
    assert "watch.counters: gpu_ecc_uncorrected_new on gpu1: measured 1, limit <= 0" in told.replace(
        "limit = 0", "limit <= 0"
    )
    assert "watch.counters: gpu_remapped_new on gpu1: measured 2" in told
    assert "xid 94 on 0000:af:00.0" in told
    assert "on gpu0" not in told
    assert measured(run)["gpu_ecc_corrected_new", "gpu1"]["value"] > 20
    assert measured(run)["gpu_ecc_corrected_new", "gpu0"]["value"] == 0


def test_mig_stops_before_anything_is_heated(rig: Rig, library: Path) -> None:
    run = GpuBox(rig, library, "mig-on").accept()
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert "gpu1: MIG is on, and a part of a GPU is not the GPU: " in run.texts("unjudged")
    assert "`sudo nvidia-smi -i GPU-68f1a2b3-0001-4000-8000-000000000001 -mig 0`" in run.texts("unjudged")
    assert run.ended()["gpu.ready"] == "error"
    assert run.bodies(ToolRan) == []
