from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest
from runs import until
from worded import worded

from acceptance.process import orphans

FAMILY = "sh -c trap '' TERM; sleep 600 & sleep 600"


def test_the_processes_of_one_session_of_two_are_swept_up() -> None:
    run_id = secrets.token_hex(8)
    environment = {**os.environ, "RIGPROOF_RUN": run_id}
    one, other = (
        subprocess.Popen(["sleep", "600"], env={**environment, "RIGPROOF_SESSION": session})
        for session in ("session-gpu-load", "session-host-load")
    )
    with one, other:
        until(lambda: len(orphans.find(run_id)) == 2, "both are there")
        assert len(orphans.sweep(run_id, session="session-gpu-load")) == 1
        assert one.wait() < 0
        assert list(orphans.find(run_id)) == [other.pid]
        assert len(orphans.sweep(run_id)) == 1


def test_every_process_of_a_run_is_found_and_swept_up() -> None:
    run_id = secrets.token_hex(8)
    environment = {**os.environ, "RIGPROOF_RUN": run_id}
    with subprocess.Popen(["setsid", *FAMILY.split(" ", 2)], env=environment) as process:
        # A fork still has its parent's command line.
        names = [FAMILY, "sleep 600", "sleep 600"]
        until(lambda: sorted(orphans.find(run_id).values()) == names, "the family is there")
        assert orphans.find(run_id)[process.pid] == FAMILY
        assert orphans.find(run_id[:-1]) == {}
        swept = orphans.sweep(run_id)
    assert sorted(worded(line).split(" (process ")[0] for line in swept) == names
    assert orphans.sweep(run_id) == ()


def test_a_run_that_left_nothing() -> None:
    assert orphans.sweep("no-such-run") == ()


def test_its_own_process_is_no_stray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    process = tmp_path / f"proc/{os.getpid()}"
    process.mkdir(parents=True)
    (process / "environ").write_bytes(b"A=1\0RIGPROOF_RUN=run-1\0")
    other = tmp_path / "proc/4194999"  # beyond what Linux gives a process
    other.mkdir()
    # A gap in an environment ends it for psutil, and must not hide what is behind it.
    (other / "environ").write_bytes(b"A=1\0\0RIGPROOF_RUN=run-1\0B=2\0")
    (other / "cmdline").write_bytes(b"stress-ng\0--cpu\x000\0")
    (tmp_path / "proc/4194998").mkdir()  # it ended while we looked
    (tmp_path / "proc/cpuinfo").write_text("")
    assert orphans.find("run-1", tmp_path) == {4194999: "stress-ng --cpu 0"}


def test_one_that_does_not_die_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "KILL_S", 0.1)
    monkeypatch.setattr(orphans, "find", lambda *_: {4194999: "load"})
    assert worded(orphans.sweep("run-1")) == ("load (process 4194999, which does not die)",)
