from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import journals
import msgspec
import pytest

from acceptance.journal import clock
from acceptance.machine.machine_file import DeclaredCpu, Machine
from acceptance.process import reaper
from acceptance.session import context as session_context
from acceptance.session.context import SessionContext


def test_a_context_survives_its_file(tmp_path: Path) -> None:
    context = SessionContext(
        mode="run",
        root="/",
        session="load",
        run_dir="/runs/a rather odd näme",
        kernel_log_after=-1,
        plan=journals.plan(),
        machine=Machine(1, "box", gpus=0, cpu=DeclaredCpu(model='a "quoted" one')),
    )
    session_context.write(context, tmp_path / "x.json")
    assert session_context.read(tmp_path / "x.json") == context


def test_a_context_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"mode": "heat", "root": "/"}')
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'heat'"):
        session_context.read(tmp_path / "x.json")


def test_the_command_line() -> None:
    argv = session_context.argv(Path("/runs/x y/session-load.json"))
    suites = str(session_context.SUITES)
    assert argv[:4] == [sys.executable, "-P", "-m", "pytest"]
    assert argv[4:6] == ["-c", f"{suites}/pytest.ini"]
    assert {f"--rootdir={suites}", f"--confcutdir={suites}"} <= set(argv)
    assert argv[-2:] == ["--rigproof-context=/runs/x y/session-load.json", suites]
    plugins = [word for option, word in itertools.pairwise(argv) if option == "-p"]
    assert plugins == ["pytest_timeout", "acceptance.session.plugin"]
    assert (session_context.SUITES / "pytest.ini").is_file()


def test_the_command_line_in_a_container() -> None:
    argv = session_context.in_container("/rigproof/session-load.json", 99.6, "boot-1")
    tail = [
        "-P",
        "-m",
        "acceptance.session.context",
        "/rigproof/session-load.json",
        "100",
        "boot-1",
    ]
    assert argv == ["/opt/rigproof/venv/bin/python", *tail]
    assert session_context.in_container("x", 1.0, "b", python="python3")[0] == "python3"


def test_the_first_process_of_a_container_becomes_the_reaper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda path, argv: become.append((path, argv)))
    session_context.main(["/x/session-load.json", "100", clock.boot_id()])
    ((path, argv),) = become
    assert path == argv[0] == sys.executable
    assert argv[1:7] == ["-I", "-S", reaper.__file__, "stdin:100", "3", "--"]
    assert argv[7:] == session_context.argv(Path("/x/session-load.json"))


def test_another_machines_kernel_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it was started"))
    with pytest.raises(SystemExit) as caught:
        session_context.main(["/x/session-load.json", "100", "another-boot"])
    assert caught.value.code == session_context.REFUSED
    assert "does not run under this machine's kernel" in capsys.readouterr().err


def test_the_environment() -> None:
    assert session_context.environment("run-1")["RIGPROOF_RUN"] == "run-1"
    assert "RIGPROOF_RUN" not in session_context.environment(None)
    assert session_context.environment(None)["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] == "1"


def test_exit_codes_are_not_pytests_own() -> None:
    own = {int(code) for code in pytest.ExitCode}
    assert len({session_context.REFUSED, session_context.NO_JOURNAL} - own) == 2
