"""GPUs that are due and that the machine does not have."""

from __future__ import annotations

import pytest
from rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "no machine file"])
def test_missing_gpus_fail_within_seconds(rig: Rig, declared: bool) -> None:
    rig.machine.write_text('schema = 1\nname = "two cards"\ngpus = 2\n', encoding="utf-8")
    run = rig.accept("--fail-fast", burn=None, machine=declared)
    run.assert_agrees()
    assert run.verdict["verdict"] == "FAIL"
    assert run.seconds < 10
    told = run.texts("violations")
    for place in ("PCI bus: ", "kernel driver: ", "device nodes: ", "NVML: "):
        assert place in told
        assert place in run.cases()["gpu.present"].result[0].text
    assert (
        "limit = 2; basis: machine.toml declares 2 GPUs" if declared else "limit >= 1; basis: "
    ) in told
    # It is said before the plan is. Nothing was heated, and every other check of the plan is there
    # as one that was not run.
    said, plan, _ = run.out.partition("profile smoke")
    assert plan
    short = "2 of 2 GPUs are not on the PCI bus" if declared else "no GPU is on the PCI bus, and"
    assert said.startswith(short)
    assert "PCI bus: " in said
    assert "the run stops at the first check that fails (--fail-fast" in said
    assert run.ended() == {"gpu.present": "fail"}
    others = {outcome for check, outcome in run.outcomes().items() if check != "gpu.present"}
    assert others == {"skip"}
    assert " not run" in run.out.splitlines()[-1]
    assert ("inventory not declared)" in run.out.splitlines()[-1]) is not declared
    assert (run.path / "machine.toml").is_file() is not declared
