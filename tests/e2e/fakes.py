"""Programs that stand in for stress-ng and stressapptest, as shell scripts, each with one fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from executable import executable
from replay import host

STRESS_NG = host.printed("stress-ng", ["--timeout", "1s", "--cpu", "0"])
STRESS_NG_FAILING = STRESS_NG.replace(
    "stress-ng: metrc: [4543] stressor",
    (
        "stress-ng: fail:  [4544] cpu: float80 error detected, failed calculation "
        "checksum\nstress-ng: metrc: [4543] stressor"
    ),
)
STRESSAPPTEST = host.printed("stressapptest", ["-s", "1", "-M", "4096", "-m", "2", "-W"])
STRESSAPPTEST_FAILING = STRESSAPPTEST.replace(
    "PASS - please verify no corrected errors", "FAIL - test discovered HW problems"
)

# Fault -> the script; TEXT and FAILING are files that hold what the tool would have printed.
SCRIPTS: Mapping[str, str] = {
    "healthy": "sleep 1; cat TEXT",
    "hangs": "head -n 2 TEXT; sleep 900",
    # until there is a file `go` beside it
    "waits": 'until [ -e "${0%/*}/go" ]; do sleep 0.1; done; sleep 1; cat TEXT',
    "failing text, exit 0": "sleep 1; cat FAILING",
}


def write(folder: Path, tool: str, fault: str) -> Path:
    """Put the tool with this fault into the folder."""
    texts = {
        "stress-ng": (STRESS_NG, STRESS_NG_FAILING),
        "stressapptest": (STRESSAPPTEST, STRESSAPPTEST_FAILING),
    }
    script = SCRIPTS[fault]
    for name, text in zip(("TEXT", "FAILING"), texts[tool], strict=True):
        file = folder / f"{tool}.{name}"
        file.write_text(text, encoding="utf-8")
        script = script.replace(name, f"'{file}'")
    return program(folder, tool, script)


def program(folder: Path, name: str, script: str) -> Path:
    """Put a shell script of this name into the folder."""
    return executable(folder / name, f"#!/bin/sh\n{script}\n")
