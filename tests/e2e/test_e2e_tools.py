"""Upstream tools that misbehave in every way a tool can."""

from __future__ import annotations

import re

import fakes
import pytest
from rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

BOTH = "cpu.stress_ng,memory.stressapptest"
CHECKS = {"stress-ng": "cpu.stress_ng", "stressapptest": "memory.stressapptest"}
# Fault -> outcome of the check, what its finding says (TOOL stands for the tool's name), verdict.
FAULTS = {
    "dies by SIGSEGV": ("error", "TOOL was ended by signal 11"),
    "prints rubbish": ("error", "TOOL: the text holds no line of TOOL"),
    "healthy text, exit 7": ("error", "TOOL ended with exit code 7"),
    "failing text, exit 0": ("fail", "measured 1 .*, limit = 0|measured 1 .*, limit <= 0"),
    "failing text, exit 7": ("fail", "measured 1 "),
    "prints 100 MB": ("error", "TOOL printed more than is kept"),
    "prints nothing": ("error", "TOOL: the text holds no line of TOOL"),
    "healthy text twice": ("error", "twice|two rows"),
    "healthy text at once": ("error", r"TOOL ended after 0\.\d s and was to load the machine for 1 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault(rig: Rig, fault: str) -> None:
    outcome, said = FAULTS[fault]
    for tool in CHECKS:
        fakes.write(rig.fakes, tool, fault)
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == ("FAIL" if outcome == "fail" else "UNJUDGED")
    for tool, check in CHECKS.items():
        assert run.ended()[check] == run.outcomes()[check] == outcome
        lines = [
            line for line in run.texts("violations" if outcome == "fail" else "unjudged").splitlines() if check in line
        ]
        assert re.search(said.replace("TOOL", tool), "\n".join(lines)), lines
        assert run.cases()[check].result[0].message in [line.partition(": ")[2] for line in lines]


def test_healthy_tools_pass_and_a_daemon_they_leave_is_ended(rig: Rig) -> None:
    fakes.write(rig.fakes, "stress-ng", "leaves a daemon")
    fakes.write(rig.fakes, "stressapptest", "healthy")
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == "PASS"
    assert run.verdict["scope"] == "partial"
    assert set(run.ended().values()) == {"pass"}


def test_a_hanging_tool_is_stopped_at_its_deadline(rig: Rig) -> None:
    fakes.write(rig.fakes, "stress-ng", "hangs")
    run = rig.accept(only="cpu.stress_ng")
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.ended() == {"cpu.stress_ng": "error"}
    # Planned are 3 s; the programs of a check have a quarter more, and half a minute.
    assert "stress-ng did not end within its time and was stopped after 34 s" in run.texts("unjudged")
    assert "dispatching hogs: " in run.texts("unjudged"), "the last it said"
    assert run.seconds < 45


def test_missing_tools_are_skips_with_the_cure(rig: Rig) -> None:
    rig.variables["PATH"] = str(rig.fakes)
    broken = fakes.write(rig.fakes, "stressapptest", "healthy")
    broken.chmod(0o644)
    run = rig.accept(only=BOTH)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert set(run.outcomes().values()) == {"skip"}
    assert "stress-ng is not installed: install it with `sudo apt install stress-ng`" in run.texts("unjudged")
    assert f"{broken} is there but may not be run: make it executable with `sudo chmod +x" in run.texts("unjudged")


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


def test_a_memory_test_that_fills_too_little_is_an_error(rig: Rig) -> None:
    fakes.write(rig.fakes, "stressapptest", "healthy")
    text = rig.fakes / "stressapptest.TEXT"
    text.write_text(text.read_text(encoding="utf-8").replace("4096M", "64M"), encoding="utf-8")
    run = rig.accept(only="memory.stressapptest")
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.outcomes() == {"memory.stressapptest": "error"}
    assert "stressapptest filled 0.06 GiB and was to fill" in run.texts("unjudged")
