"""A plain machine with the real tools passes, and everything about that run can be had again
from its journal.

RIGPROOF_TEST_OUT=FOLDER leaves the run there, for a baseline.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rig import Rig

from acceptance import resources
from acceptance.core.evidence import ToolRan
from acceptance.core.record import Measured, RunEnded

# The real loads take over a minute. CI runs this test alone: beside other programs a load may not
# end within its time, and such a run is rightly UNJUDGED.
pytestmark = [pytest.mark.e2e, pytest.mark.tools, pytest.mark.timeout(400)]


def test_smoke_on_a_machine_without_gpus(rig: Rig) -> None:
    rig.machine = resources.locate("machines") / "cpu-only.toml"
    rig.variables.clear()
    rig.out = Path(os.environ.get("RIGPROOF_TEST_OUT", rig.out)).resolve()
    run = rig.accept(burn=None)
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS", run.out
    assert run.verdict["scope"] == "full"
    assert set(run.ended()) == set(run.outcomes())
    assert {
        "cpu.stress_ng",
        "cpu.gemm[f64]",
        "cpu.gemm[f32]",
        "memory.bandwidth",
        "memory.stressapptest",
    } <= set(run.ended())
    ran = {
        Path(body.argv[0]).name: body.returncode
        for body in run.bodies(ToolRan)
        if "smartctl" not in body.argv[0]
    }
    assert ran["stress-ng"] == ran["stressapptest"] == 0
    assert set(ran.values()) == {0}
    assert all(body.value is not None for body in run.bodies(Measured))
    assert [end.complete for end in run.bodies(RunEnded)] == [True]
    assert "cannot detect: " in run.out
    again(rig, run.path)


def again(rig: Rig, folder: Path) -> None:
    """`judge` and `report` from the journal alone: the same verdict, the same files to the byte."""
    names = ("verdict.json", "junit.xml", "report.html")
    before = {name: (folder / name).read_bytes() for name in names}
    assert rig.run(["judge", str(folder)]).code == 0
    for name in names:
        (folder / name).unlink()
    assert rig.run(["report", str(folder)]).code == 0
    assert {name: (folder / name).read_bytes() for name in names} == before
