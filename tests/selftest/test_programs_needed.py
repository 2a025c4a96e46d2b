"""What the self-test needs on a machine is said before anything is played."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from raising import raising

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.station.image import engine
from selftest import __main__ as selftest
from selftest import programs

ROOT = Path(__file__).resolve().parents[2]
CURE = "install one with `sudo make engine`"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """A machine, as root, without the programs of the set, and without an engine."""
    lacking: set[str] = set()

    def find(program: str, package: str | None = None) -> str:
        if program in lacking:
            raise command.ProgramMissing("program_not_on_path", program=program)
        return f"/usr/bin/{program}"

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(command, "find", find)
    monkeypatch.setattr(engine, "find", raising(SetupError(CURE)))
    monkeypatch.setattr(selftest, "_run", lambda *_: pytest.fail("it was played"))
    monkeypatch.chdir(tmp_path)
    return lacking


@pytest.mark.parametrize(
    ("lacking", "only", "packages", "engine_lacks"),
    [
        ({"fio"}, "", "fio", True),
        ({"fio", "cc", "smartctl"}, "bad input", "gcc libc6-dev smartmontools fio", False),
        (set(programs.NEEDED), "clean", " ".join(programs.NEEDED.values()), True),
        (set(), "machine-checks", "", True),
    ],
)
def test_all_that_is_missing_is_said_at_once(
    bare: set[str],
    capsys: pytest.CaptureFixture[str],
    lacking: set[str],
    only: str,
    packages: str,
    engine_lacks: bool,
) -> None:
    bare |= lacking
    assert selftest.main(["--only", only]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert "Traceback" not in told.err
    assert re.findall(r"`sudo apt install (.*?)`", told.err) == ([packages] if packages else [])
    assert (CURE in told.err) is engine_lacks
    assert all(program in told.err for program in lacking)


def test_make_tools_installs_what_rigproof_starts() -> None:
    script = (ROOT / "scripts/tools").read_text(encoding="utf-8")
    (packages,) = re.findall(r'^packages="(.*)"$', script, re.MULTILINE)
    own = {"util-linux", "mount", "gcc libc6-dev"}
    assert set(packages.split()) == set(programs.NEEDED.values()) - own
