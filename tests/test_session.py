from __future__ import annotations

import itertools
import sys
from pathlib import Path

import journals
import msgspec
import pytest

from acceptance import session
from acceptance.judge.declared import DeclaredCpu
from acceptance.judge.machine import Machine
from acceptance.session import Context


def test_a_context_survives_its_file(tmp_path: Path) -> None:
    context = Context(
        mode="run",
        root="/",
        session="load",
        run_dir="/runs/a rather odd näme",
        kernel_log_after=-1,
        plan=journals.plan(),
        machine=Machine(1, "box", gpus=0, cpu=DeclaredCpu(model='a "quoted" one')),
    )
    session.write(context, tmp_path / "x.json")
    assert session.read(tmp_path / "x.json") == context


def test_a_context_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"mode": "heat", "root": "/"}')
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value 'heat'"):
        session.read(tmp_path / "x.json")


def test_the_command_line() -> None:
    argv = session.argv(Path("/runs/x y/session-load.json"))
    suites = str(session.SUITES)
    assert argv[:4] == [sys.executable, "-P", "-m", "pytest"]
    assert argv[4:6] == ["-c", f"{suites}/pytest.ini"]
    assert {f"--rootdir={suites}", f"--confcutdir={suites}"} <= set(argv)
    assert argv[-2:] == ["--rigproof-context=/runs/x y/session-load.json", suites]
    plugins = [word for option, word in itertools.pairwise(argv) if option == "-p"]
    assert plugins == ["pytest_timeout", "acceptance.plugin"]
    assert (session.SUITES / "pytest.ini").is_file()


def test_the_environment() -> None:
    assert session.environment("run-1")["RIGPROOF_RUN"] == "run-1"
    assert "RIGPROOF_RUN" not in session.environment(None)
    assert session.environment(None)["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] == "1"


def test_exit_codes_are_not_pytests_own() -> None:
    own = {int(code) for code in pytest.ExitCode}
    assert len({session.REFUSED, session.NO_JOURNAL} - own) == 2
