"""What the watch over the GPUs sees while they work, and what becomes of a run whose driver does not answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from gpu_box import Document, GpuBox
from rig import Rig

from acceptance.judge.record import CheckEnded, ToolRan

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

PLAIN = "gpu.present,gpu.ready,gpu.granted,burn,watch"
LATER_S = 4.0  # after the first call of a process: among the loads for the watch, never for a probe


def test_clocks_that_are_held_back_fail_by_reason(rig: Rig, library: Path) -> None:
    def held(document: Document) -> None:
        document["gpus"][0]["clock_event_reasons"] = ["hw-slowdown", "hw-power-brake"]
        document["gpus"][1]["clock_event_reasons"] = ["sw-power-cap", "sw-thermal"]
        # Between two samples: only the driver's own sum of the time tells of it.
        document["timeline"] = [{"after_s": 4.0, "gpu": 1, "grow": {"hw_thermal_ns": 1e6}}]

    run = GpuBox(rig, library, "2x4090", edit=held).accept(only=PLAIN, burn=4)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    told = run.texts("violations")
    for measurement, gpu in (
        ("gpu_hw_slowdown", "gpu0"),
        ("gpu_power_brake", "gpu0"),
        ("gpu_sw_thermal_slowdown", "gpu1"),
        ("gpu_hw_thermal_slowdown", "gpu1"),
    ):
        assert f"watch.throttling: {measurement} on {gpu}: measured " in told
    assert len(told.splitlines()) == 4
    assert "during " in told
    assert "burn.gpu_burn[float]" in told
    assert run.texts("unjudged") == ""


def test_links_below_what_card_and_slot_can_do_fail(rig: Rig, library: Path) -> None:
    def worse(document: Document) -> None:
        document["gpus"], document["pairs"] = document["gpus"][:3], {"every": document["pairs"]["every"]}
        document["gpus"][1]["link_gen"] = 3
        document["gpus"][2]["link_width"] = 8

    run = GpuBox(rig, library, "8xh100", edit=worse).accept(only=f"{PLAIN},link.host_copies", burn=4)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    told = run.texts("violations")
    assert "watch.pcie_link: gpu_link_gen on gpu1: measured 3, limit >= 5" in told
    assert "watch.pcie_link: gpu_link_width on gpu2: measured 8, limit >= 16" in told
    for gpu in ("gpu1", "gpu2"):
        assert f"link.host_copies: copy_h2d on {gpu}: measured " in told
    assert "on gpu0" not in told


def test_a_gpu_near_its_limit_fails(rig: Rig, library: Path) -> None:
    def hot(document: Document) -> None:
        document["gpus"][1] |= {"temperature_c": 84, "temperature_margin_c": 0, "pcie_replays": 0}
        document["timeline"] = [{"after_s": 2.0, "gpu": 0, "grow": {"pcie_replays": 100.0}}]

    run = GpuBox(rig, library, "2x4090", edit=hot).accept(only=PLAIN, burn=3)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    told = run.texts("violations")
    assert "watch.heat: gpu_temperature_margin on gpu1: measured 0 degC, limit >= 1 degC" in told
    assert "watch.counters: gpu_pcie_replays on gpu0: measured " in told
    assert len(told.splitlines()) == 2


def test_a_driver_that_hangs_in_the_middle_leaves_the_run_unjudged(rig: Rig, library: Path) -> None:
    """It takes a tool along: that is stopped at its deadline, and the run ends in time."""

    def hangs(document: Document) -> None:
        document["timeline"] = [{"after_s": LATER_S, "gpu": 1, "set": {"hang": True}}]

    box = GpuBox(rig, library, "2x4090", edit=hangs, faults={"deviceQuery": "hangs"})
    run = box.accept(only="gpu.present,gpu.granted,gpu.device_query")
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    told = run.texts("unjudged")
    assert "the watch over the GPUs hung: no sample of any GPU for 5 s" in told
    assert re.search(r"deviceQuery did not end within its time and was stopped after 9\d s", told)
    assert run.outcomes()["gpu.granted"] == "pass"
    assert run.seconds < 120


def test_a_driver_that_crashes_in_the_middle_leaves_the_run_unjudged(rig: Rig, library: Path) -> None:
    def crashes(document: Document) -> None:
        document["timeline"] = [{"after_s": LATER_S, "set": {"crash": True}}]

    run = GpuBox(rig, library, "2x4090", edit=crashes).accept(only=PLAIN, burn=6)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert "the watch over the GPUs was ended by signal 6" in run.texts("unjudged")
    assert run.outcomes()["watch.sampled"] == "error"
    assert run.outcomes()["burn.gpu_burn[float]"] == "pass"


@pytest.mark.parametrize(
    ("how", "verdict", "said"),
    [
        ({"init_hang": True}, "FAIL", "the driver hangs"),
        ({"init_crash": True}, "UNJUDGED", "asking NVML was ended by signal 6"),
        ({"init_error": 18}, "UNJUDGED", "the driver was updated and its old module is still loaded: reboot"),
    ],
    ids=["hangs", "crashes", "mismatch"],
)
def test_a_driver_that_cannot_be_asked_stops_the_run_at_once(
    rig: Rig, library: Path, how: dict[str, Any], verdict: str, said: str
) -> None:
    run = GpuBox(rig, library, "2x4090", edit=lambda document: document.update(how)).accept()
    run.assert_agrees()
    assert run.verdict["verdict"] == verdict
    told = run.texts("violations")
    assert ("gpu.present: gpu_in_nvml on gpu0: measured 0" in told) == (verdict == "FAIL")
    assert said in told + run.texts("unjudged")
    assert run.bodies(ToolRan) == []
    assert run.seconds < (90 if verdict == "FAIL" else 30)  # a driver that brings eight GPUs up may take a minute


def test_what_stands_in_the_way_is_named_with_its_cure(rig: Rig, library: Path) -> None:
    def busy(document: Document) -> None:
        document["gpus"][0]["compute_processes"] = [{"pid": 4194300, "name": "train.py", "memory_bytes": 5 << 30}]
        document["gpus"][1]["compute_mode"] = "exclusive-process"

    run = GpuBox(rig, library, "2x4090", edit=busy).accept()
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    told = run.texts("unjudged")
    assert "gpu0: train.py (process 4194300, 5.0 GiB) computes on it" in told
    assert "gpu1: compute mode is exclusive-process" in told
    assert "-c DEFAULT" in told
    assert [(body.check, body.outcome) for body in run.bodies(CheckEnded)] == [
        ("gpu.present", "pass"),
        ("gpu.ready", "error"),
    ]
    assert run.bodies(ToolRan) == []
