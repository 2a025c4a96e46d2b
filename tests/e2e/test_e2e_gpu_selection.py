"""Which GPUs a run tests: `--gpus`, and what CUDA_VISIBLE_DEVICES outside may not do."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_box import GpuBox
from rig import Rig

from acceptance.core.evidence import ToolRan
from acceptance.core.parts import MACHINE, Gpu
from acceptance.core.record import Measured

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

SECOND = "GPU-4b0c8a1e-0002-4090-8000-000000000002"
SHORT = "gpu.present,gpu.granted,gpu.device_query,link.bandwidth_test"


@pytest.mark.parametrize("asked", ["1", SECOND[:21]])
def test_one_gpu_of_two(rig: Rig, library: Path, asked: str) -> None:
    """Its program's device 0 is the machine's gpu1; nothing of the other one is measured, and it
    is no acceptance.
    """
    run = GpuBox(rig, library, "2x4090").accept(
        "--gpus", asked, only=SHORT, variables={"CUDA_VISIBLE_DEVICES": "0"}
    )
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS"
    assert run.verdict["scope"] == "partial"
    assert {one.component for one in run.bodies(Measured)} == {MACHINE, Gpu(1)}
    assert {one.serial for one in run.bodies(Measured) if one.measurement == "gpu_granted"} == {
        SECOND
    }
    argvs = [
        tool.argv for tool in run.bodies(ToolRan) if Path(tool.argv[0]).name == "bandwidthTest"
    ]
    assert [argv[1] for argv in argvs] == ["--device=0"]
    assert (
        f"CUDA_VISIBLE_DEVICES=0 is set and not used: --gpus {asked} says which GPUs are tested"
        in " ".join(run.out.split())
    )


def test_the_gpu_that_a_slurm_job_was_given(rig: Rig, library: Path) -> None:
    job = {"CUDA_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7", "RIGPROOF_EXCLUSIVE_JOB": "7"}
    run = GpuBox(rig, library, "2x4090").accept(only=SHORT, variables=job)
    run.assert_agrees()
    assert (run.verdict["verdict"], run.verdict["scope"]) == ("PASS", "partial")
    assert {one.component for one in run.bodies(Measured)} == {MACHINE, Gpu(1)}
    assert "CUDA_VISIBLE_DEVICES=1: these GPUs were given to Slurm job 7" in " ".join(
        run.out.split()
    )
