"""Upstream GPU tools that misbehave: what each way of it is worth, on a described machine that is healthy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpu_box import GpuBox
from rig import Rig
from run_left import Run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

CHECKS = {
    "deviceQuery": "gpu.device_query",
    "nvbandwidth": "link.host_copies",
    "bandwidthTest": "link.bandwidth_test",
    "p2pBandwidthLatencyTest": "link.p2p",
    "gpu-burn": "burn.gpu_burn[float]",
}
# What each fault comes to: the check's outcome, and what its findings say.
FAULTS = {
    ("deviceQuery", "misses one"): ("fail", "gpu_seen_by_cuda on gpu1: measured 0, limit >= 1"),
    ("deviceQuery", "shows fewer multiprocessors"): ("fail", "gpu_sm_count on gpu1: measured 72, limit = 84"),
    ("deviceQuery", "802"): ("error", "CUDA error 802 .*fabric"),
    ("deviceQuery", "is truncated"): ("error", "the text is cut"),
    ("deviceQuery", "crashes"): ("error", "was ended by signal 11"),
    ("nvbandwidth", "copies nothing"): ("error", "of gpu1 is 0.00: nothing was copied there"),
    ("nvbandwidth", "copies NaN"): ("error", "no figure|cell|number"),
    ("nvbandwidth", "is slow"): ("fail", "copy_h2d on gpu1: measured "),
    ("nvbandwidth", "is truncated"): ("error", "the JSON is cut or damaged"),
    ("nvbandwidth", "misses one"): ("error", "gpu1"),
    ("nvbandwidth", "floods"): ("error", "printed more than is kept"),
    ("bandwidthTest", "copies nothing"): ("error", "gpu1|0.0"),
    ("bandwidthTest", "copies NaN"): ("error", "nan"),
    ("bandwidthTest", "is truncated"): ("error", "cut|Result"),
    ("bandwidthTest", "crashes"): ("error", "was ended by signal 11"),
    ("p2pBandwidthLatencyTest", "gains nothing"): ("fail", "p2p_gain on gpu0->gpu1: measured "),
    ("p2pBandwidthLatencyTest", "dead pair"): ("error", "p2p_on of gpu0->gpu1 is 0.00: nothing was measured there"),
    ("p2pBandwidthLatencyTest", "is truncated"): ("error", "the text is cut"),
    ("p2pBandwidthLatencyTest", "crashes"): ("error", "was ended by signal 11"),
    ("gpu-burn", "is FAULTY"): ("fail", "gpu_burn_errors_float on gpu1: measured 1 .*FAULTY: GPU 1"),
    ("gpu-burn", "wrong results"): ("fail", "gpu_burn_errors_float on gpu1: measured 12 "),
    ("gpu-burn", "dies"): ("fail", "gpu_burn_errors_float on gpu1: measured 1 "),
    ("gpu-burn", "compares nothing"): ("error", "OK, but after too few compares, which proves nothing"),
    ("gpu-burn", "slow"): ("fail", "gpu_burn_ratio_float on gpu1: measured 0.8"),
    ("gpu-burn", "is truncated"): ("error", "the text ends without the table"),
    ("gpu-burn", "misses one"): ("error", "gpu1"),
    ("gpu-burn", "802"): ("error", "802"),
}


@dataclass(frozen=True)
class Round:
    """Tools that misbehave together in one run."""

    faults: dict[str, str]

    def __str__(self) -> str:
        return ", ".join(f"{tool} {how}" for tool, how in self.faults.items())


def rounds() -> list[Round]:
    """Every fault once, one of each tool at a time."""
    ways = {tool: [how for named, how in FAULTS if named == tool] for tool in CHECKS}
    return [
        Round({tool: hows[number] for tool, hows in ways.items() if number < len(hows)})
        for number in range(max(map(len, ways.values())))
    ]


@pytest.mark.parametrize("together", rounds(), ids=str)
def test_tools_that_misbehave(rig: Rig, library: Path, together: Round) -> None:
    only = ",".join(["gpu.present", "gpu.granted", *(CHECKS[tool] for tool in together.faults), "watch.sampled"])
    run = GpuBox(rig, library, "2x3090ti-bridged", faults=together.faults).accept(only=only, burn=1)
    run.assert_agrees()
    wanted = {tool: FAULTS[tool, how] for tool, how in together.faults.items()}
    for tool, (outcome, said) in wanted.items():
        assert run.outcomes()[CHECKS[tool]] == outcome, tool
        assert re.search(said, findings(run, CHECKS[tool]), re.DOTALL), (tool, findings(run, CHECKS[tool]))
    assert run.verdict["verdict"] == (
        "FAIL" if any(outcome == "fail" for outcome, _ in wanted.values()) else "UNJUDGED"
    )
    assert run.outcomes()["watch.sampled"] == "pass"


def findings(run: Run, check: str) -> str:
    lines = f"{run.texts('violations')}\n{run.texts('unjudged')}".splitlines()
    # A finding of several lines goes on without the check's name.
    return "\n".join(
        line for line in lines if line.startswith(check) or not line.startswith(("run: ", "gpu.", "link.", "burn."))
    )


def test_data_that_arrives_changed_fails(rig: Rig, library: Path) -> None:
    box = GpuBox(rig, library, "2x3090ti-bridged", faults={"nvbandwidth": "finds wrong data"})
    run = box.accept(only="gpu.present,link.peer_copies,link.host_copies")
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    assert run.outcomes()["link.host_copies"] == "pass"
    assert "wrong data arrived: " in run.texts("violations")
