"""A disk that is full, and an audience that has gone."""

from __future__ import annotations

import json
import os
import resource
import time

import fakes
import pytest
from rig import Rig, processes, wait_for

from acceptance.process import orphans

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]


def no_more(pid: int) -> None:
    """As on a full disk: no file of this process grows any more.

    Every user can ask this for processes of his own.
    """
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("moment", ["at its start", "in a check"])
def test_the_harness_can_write_no_more(rig: Rig, moment: str) -> None:
    fakes.write(rig.fakes, "stress-ng", "healthy")
    argv = rig.argv(only="gpu,cpu.stress_ng")
    before, began = rig.runs(), time.monotonic()
    started = rig.start(argv)
    folder = rig.started_run(before)
    if moment == "in a check":
        rig.reached(folder, "cpu.stress_ng")
    else:
        wait_for((folder / "journal.jsonl").exists)
    no_more(started.pid)
    run = rig.finish(started, before, began)
    assert run.code == 3
    assert "PASS" not in run.out
    assert run.err.count("\n") == 1
    assert "cannot be written (File too large): make room, then " in run.err
    assert str(folder) in run.err
    assert not (folder / "verdict.json").exists()
    assert orphans.find(folder.name) == {}
    again = rig.run(argv)
    again.assert_agrees()
    assert again.code == 0
    assert f"an earlier run ({folder.name}) was " in again.out
    assert json.loads((folder / "verdict.json").read_bytes())["verdict"] == "UNJUDGED"


def test_a_session_can_write_no_more(rig: Rig) -> None:
    """The session gives up and says why; the supervisor, whose disk is not
    full, goes on to the reports.
    """
    fakes.write(rig.fakes, "stress-ng", "healthy")
    before, began = rig.runs(), time.monotonic()
    started = rig.start(rig.argv(only="gpu,cpu.stress_ng,kernel_log.during_run"))
    folder = rig.started_run(before)
    rig.reached(folder, "cpu.stress_ng")
    session, *_ = processes(folder.name, "pytest", "session-host-load.json")
    no_more(session)  # not a fork of it that is about to be another program
    run = rig.finish(started, before, began)
    run.assert_agrees()
    assert run.verdict["verdict"] == "UNJUDGED"
    assert "run: session host-load ended with exit code 65" in run.texts("unjudged")
    assert "journal-host-load.jsonl: cannot be written (File too large)" in run.texts("unjudged")
    assert "kernel_log.during_run" in run.ended()


def test_reports_that_cannot_be_written(rig: Rig) -> None:
    fakes.write(rig.fakes, "stress-ng", "healthy")
    folder = rig.accept(only="gpu,cpu.stress_ng").path
    for name in ("junit.xml", "report.html", "verdict.json"):
        kept = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        size = len(kept[folder / name])
        limit = (size - 1, size - 1)
        run = rig.run(
            ["report", str(folder)],
            prepare=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        )  # type: ignore[misc]
        assert run.code == 3
        assert run.err.count("\n") == 1
        assert (
            "cannot be written (File too large): make room, then run 'rigproof report " in run.err
        )
        assert {file: file.read_bytes() for file in folder.iterdir() if file.is_file()} == kept, (
            "the old ones stay whole"
        )


@pytest.mark.parametrize("stream", ["closed pipe", "full", "closed"])
def test_nobody_reads_what_it_says(rig: Rig, stream: str) -> None:
    """A run outlives its audience: the verdict is in its files and in its exit code."""
    fakes.write(rig.fakes, "stress-ng", "healthy")
    reader, out = os.pipe()
    os.close(reader)
    if stream == "full":
        os.close(out)
        out = os.open("/dev/full", os.O_WRONLY)

    def child() -> None:
        if stream == "closed":
            os.close(0)
            os.close(1)
        else:
            os.dup2(out, 1)

    before, began = rig.runs(), time.monotonic()
    started = rig.start(rig.argv(only="gpu,cpu.stress_ng"), prepare=child)
    os.close(out)
    run = rig.finish(started, before, began)
    assert (run.code, run.err) == (0, "")
    assert run.verdict["verdict"] == "PASS"
