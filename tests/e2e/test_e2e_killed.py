"""Killed, stopped, and started twice: a crash is evidence, and nothing is left behind.

Kills at random moments are the self-test's: selftest/interruption.py.
"""

from __future__ import annotations

import fcntl
import os
import signal
import termios
import time
from pathlib import Path

import fakes
import pytest
from rig import BUSY, Rig, processes, wait_for
from run_left import Run

from acceptance.core.record import CheckEnded, CheckStarted, RunEnded

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(280)]


LOAD = '"load":"cpu_gemm"'  # in its command line


def healthy(rig: Rig) -> None:
    for tool in ("stress-ng", "stressapptest"):
        fakes.write(rig.fakes, tool, "healthy")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_its_reports(rig: Rig, number: signal.Signals) -> None:
    fakes.write(rig.fakes, "stress-ng", "hangs")
    healthy_after = rig.argv(only="gpu,cpu.stress_ng,kernel_log.during_run")
    run = interrupted(rig, healthy_after, "cpu.stress_ng", number)
    run.assert_agrees()
    assert run.code == 3
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.outcomes() == {
        "gpu.present": "pass",
        "cpu.stress_ng": "error",
        "kernel_log.during_run": "error",
    }
    assert f"cpu.stress_ng: did not finish: stopped by {number.name}" in run.texts("unjudged")
    assert [end.complete for end in run.bodies(RunEnded)] == [False]


def test_a_run_outlives_its_terminal(rig: Rig) -> None:
    """The connection is lost: the kernel hangs up, and nothing can be printed any more."""
    for tool in ("stress-ng", "stressapptest"):
        fakes.write(rig.fakes, tool, "healthy")
    ours, theirs = os.openpty()

    def on_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(theirs, number)

    before, began = rig.runs(), time.monotonic()
    started = rig.start(rig.argv(only="gpu,cpu,kernel_log.during_run"), prepare=on_the_terminal)
    os.close(theirs)
    folder = rig.started_run(before)
    rig.reached(folder, "cpu.stress_ng")
    told = os.read(ours, 65536).decode()
    assert "Ctrl-C stops this run. If its terminal is closed" in " ".join(told.split())
    os.close(ours)
    run = rig.finish(started, before, began)
    assert run.verdict["verdict"] == "PASS", run.texts("unjudged")
    assert [end.complete for end in run.bodies(RunEnded)] == [True]
    assert all((folder / name).is_file() for name in ("report.html", "junit.xml"))


def interrupted(rig: Rig, argv: list[str], check: str, number: signal.Signals) -> Run:
    before, began = rig.runs(), time.monotonic()
    started = rig.start(argv)
    rig.reached(rig.started_run(before), check)
    started.send_signal(number)
    started.send_signal(number)  # people press it twice
    return rig.finish(started, before, began)


def test_a_signal_before_the_run_leaves_no_run(rig: Rig) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        started = rig.start(rig.argv(only="gpu"))
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
        wait_for(children.read_text)  # it looks at the machine, or collects its checks
        started.send_signal(number)
        out, err = started.communicate(timeout=30)
        assert started.returncode == 3
        assert err == f"rigproof: stopped by {number.name}\n"
        assert out == ""
        assert rig.runs() == set()


@pytest.mark.parametrize("victim", ["worker", "reaper"])  # the self-test kills the load itself
def test_a_killed_load_is_an_error(rig: Rig, victim: str) -> None:
    before, began = rig.runs(), time.monotonic()
    started = rig.start(rig.argv(only="cpu.gemm[f64],cpu.stress_ng"))
    fakes.write(rig.fakes, "stress-ng", "healthy")
    folder = rig.started_run(before)
    rig.reached(folder, "cpu.gemm[f64]")
    # The load itself comes first, then its workers, which carry the same command line.
    family = wait_for(lambda: found if len(found := processes(folder.name, LOAD)) > 1 else None)
    reapers = processes(folder.name, "reaper.py", LOAD, without="")
    time.sleep(1.0)
    os.kill({"worker": family[1], "reaper": reapers[0]}[victim], signal.SIGKILL)
    run = rig.finish(started, before, began)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert run.outcomes() == {"cpu.stress_ng": "pass", "cpu.gemm[f64]": "error"}
    told = run.texts("unjudged")
    assert "the load cpu_gemm " in told
    assert "ended by signal 9" in told
    started_checks = [body.check for body in run.bodies(CheckStarted)]
    assert started_checks.count("cpu.gemm[f64]") == 1, "a load that died is never run again"
    assert len(run.bodies(CheckEnded)) == 2


def test_two_runs_at_once(rig: Rig) -> None:
    healthy(rig)
    fakes.write(rig.fakes, "stress-ng", "waits")
    before, began = rig.runs(), time.monotonic()
    first = rig.start(rig.argv(only="cpu.stress_ng,memory.stressapptest"))
    folder = rig.started_run(before)
    second = rig.start(rig.argv(only="gpu"), wait=False)
    out, err = second.communicate(timeout=60)
    (rig.fakes / "go").touch()
    assert second.returncode == 2
    assert err.count("\n") == 1
    assert BUSY in err
    assert str(folder) in err
    assert str(first.pid) in err
    assert "PASS" not in out
    run = rig.finish(first, before, began)
    assert run.folder == folder
    run.assert_agrees()
    assert run.ended() == {"cpu.stress_ng": "pass", "memory.stressapptest": "pass"}
