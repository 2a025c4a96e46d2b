"""Upstream tools that misbehave in every way a tool can."""

from __future__ import annotations

import fakes
import pytest
from rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

BOTH = "cpu.stress_ng,memory.stressapptest"
CHECKS = {"stress-ng": "cpu.stress_ng", "stressapptest": "memory.stressapptest"}


def test_healthy_tools_pass_and_a_daemon_they_leave_is_ended(rig: Rig) -> None:
    fakes.write(rig.fakes, "stress-ng", "leaves a daemon")
    fakes.write(rig.fakes, "stressapptest", "healthy")
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS"
    assert run.verdict["scope"] == "partial"
    assert set(run.ended().values()) == {"pass"}


def test_missing_tools_are_skips_with_the_cure(rig: Rig) -> None:
    rig.variables["PATH"] = str(rig.fakes)
    broken = fakes.write(rig.fakes, "stressapptest", "healthy")
    broken.chmod(0o644)
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert set(run.outcomes().values()) == {"skip"}
    assert "stress-ng is not installed: install it with `sudo apt install stress-ng`" in run.texts(
        "unjudged"
    )
    assert (
        f"{broken} is there but may not be run: make it executable with `sudo chmod +x"
        in run.texts("unjudged")
    )


def test_a_program_that_cannot_be_executed_is_an_error(rig: Rig) -> None:
    for tool in CHECKS:
        file = rig.fakes / tool
        file.write_bytes(b"\x7fELF of another machine")
        file.chmod(0o755)
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert set(run.outcomes().values()) == {"error"}
    assert "Exec format error" in run.texts("unjudged")
