"""rigproof as the first process of a container: the kernel drops its signals without a handler.

A process namespace stands for the container, which takes root.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fakes
import pytest
from rig import Rig, processes, wait_for

from acceptance.process import orphans

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
RIGPROOF = str(Path(sys.executable).with_name("rigproof"))
SCRIPT = Path(__file__).parents[2] / "deploy" / "kubernetes" / "base" / "accept"
PROGRAMS = {
    "rigproof": [*CONTAINER, RIGPROOF],
    "the script of deploy/kubernetes": [*CONTAINER, "/bin/sh", str(SCRIPT)],
}


def first_process(started: subprocess.Popen[str]) -> int:
    """Process id of the container's first process, as it is outside."""
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    return int(wait_for(lambda: children.read_text(encoding="ascii").split())[0])


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_termination_notice_ends_the_run_as_unjudged(rig: Rig, program: list[str]) -> None:
    fakes.write(rig.fakes, "stress-ng", "hangs")
    verdicts = rig.home / "verdicts"
    path = os.pathsep.join([str(rig.fakes), str(Path(RIGPROOF).parent), os.environ["PATH"]])
    variables = {"PATH": path, "NODE": "gpu-1", "FOLDER": str(verdicts), "OUT": str(rig.out)}
    argv = rig.argv(only="gpu,cpu.stress_ng,kernel_log.during_run")
    before, began = rig.runs(), time.monotonic()
    scripted = str(SCRIPT) in program
    started = rig.start(argv[1:] if scripted else argv, program=program, variables=variables)
    folder = rig.started_run(before)
    wait_for(lambda: processes(folder.name, "fakes/stress-ng"))
    if scripted:  # before anything is heated, for a node that loses power then
        (begun,) = (verdicts / "gpu-1").iterdir()
        assert begun.name.endswith("Z-0")
    os.kill(first_process(started), signal.SIGTERM)
    run = rig.finish(started, before, began)
    run.assert_agrees()
    assert (run.code, run.verdict["verdict"]) == (3, "UNJUDGED")
    assert "cpu.stress_ng: did not finish: stopped by SIGTERM" in run.texts("unjudged")
    assert orphans.find(folder.name) == {}
    if scripted:
        (home,) = (verdicts / "gpu-1").iterdir()
        assert home.name == folder.name
        kept = json.loads((home / "verdict.json").read_bytes())
        assert (kept["run_id"], kept["verdict"]) == (folder.name, "UNJUDGED")


def test_a_termination_notice_before_a_run_is_not_lost(rig: Rig) -> None:
    """A verb without a run has no handler of its own."""
    plan = ["plan", *rig.argv(only="gpu,cpu")[1:]]
    started = rig.start(plan, program=PROGRAMS["rigproof"])
    first = first_process(started)

    def handled() -> bool:
        lines = Path(f"/proc/{first}/status").read_text(encoding="utf-8").splitlines()
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
        return bool(caught >> (signal.SIGTERM - 1) & 1)

    wait_for(handled)
    os.kill(first, signal.SIGTERM)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (3, "rigproof: stopped by SIGTERM\n")
