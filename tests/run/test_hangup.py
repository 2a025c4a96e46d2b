"""A run that outlives its terminal, and what is said where it does not."""

from __future__ import annotations

import io
import os
import shlex
import sys
from pathlib import Path

import pytest
from machine_tree import completed
from rich.console import Console

from acceptance.cli import machine_test
from acceptance.core.language import ENGLISH
from acceptance.process import command
from acceptance.reports.terminal import Terminal
from acceptance.run import signals
from acceptance.station.options import Options

LOGIN = "0::/user.slice/user-1000.slice/session-3.scope\n"


@pytest.mark.parametrize(
    ("groups", "answer", "ended"),
    [
        (LOGIN, "b true\n", True),
        (f"12:pids:/x\n1:name=systemd:{LOGIN[3:]}", "b true\n", True),
        (LOGIN, "b false\n", False),
        (LOGIN, "", False),
        # Root's login, a unit of the user's manager, a service: none ends with a login.
        ("0::/user.slice/user-0.slice/session-3.scope\n", "b true\n", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x\n", "b true\n", False),
        ("0::/system.slice/ssh.service\n", "b true\n", False),
        (None, "b true\n", False),
    ],
)
def test_what_systemd_does_to_a_login(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    groups: str | None,
    answer: str,
    ended: bool,
) -> None:
    if groups is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(groups)
    monkeypatch.setattr(command, "find", lambda program: program)
    monkeypatch.setattr(command, "run", lambda *_, **__: completed(answer))
    assert signals.ended_at_logout(tmp_path) is ended


def test_without_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(program: str) -> str:
        raise command.ProgramMissing("program_not_on_path", program=program)

    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(LOGIN)
    monkeypatch.setattr(command, "find", missing)
    assert not signals.ended_at_logout(tmp_path)


@pytest.mark.parametrize(
    ("terminal", "ended", "user", "told"),
    [
        (False, True, 0, ""),
        (True, False, 1000, "it goes on and writes its verdict to: {folder}"),
        (True, True, 0, "start it with: systemd-run --scope {typed}"),
        (True, True, 1000, "loginctl enable-linger; systemd-run --user --scope {typed}"),
    ],
)
def test_what_becomes_of_the_run_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    terminal: bool,
    ended: bool,
    user: int,
    told: str,
) -> None:
    monkeypatch.setattr(signals, "has_terminal", lambda: terminal)
    monkeypatch.setattr(signals, "ended_at_logout", lambda _root: ended)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    typed = ".venv/bin/rigproof accept --machine 'a b.toml' --gpus 0,1"
    monkeypatch.setattr(sys, "argv", shlex.split(typed))
    shown = io.StringIO()
    screen = Terminal(Console(file=shown, width=4000))
    machine_test._say_what_a_hangup_does(screen, Options(), tmp_path, ENGLISH)
    words = " ".join(shown.getvalue().split())
    assert words.endswith(told.format(folder=tmp_path, typed=typed))
    assert bool(words) is terminal
