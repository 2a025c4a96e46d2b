"""`rigproof nightly` tells of whatever came of the night, as long as somebody can be told."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import journals
import pytest
from executable import executable
from junitparser import Failure, JUnitXml
from known import known
from product_session import known_machine
from raising import raising

from acceptance.__main__ import main
from acceptance.cli import machine_test
from acceptance.core.message import Message, SetupError
from acceptance.core.record import RunStarted
from acceptance.journal import clock, reader, segment
from acceptance.notify.schedule import installation
from acceptance.run import lock


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a command that keeps what it is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    known_machine(monkeypatch)
    executable(tmp_path / "hook", "#!/bin/sh\ncat >told\n")
    return tmp_path


def night(
    here: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> tuple[int, list[str] | None]:
    """The exit code of a night that ends with an error, and what the command
    was told to be unjudged.
    """

    monkeypatch.setattr(machine_test, "run_test", raising(error))
    code = main(["nightly", "--on-fail", "./hook", "--textfile", "x.prom"])
    if not (here / "told").exists():
        return code, None
    return code, [row["text"] for row in json.loads((here / "told").read_text())["unjudged"]]


TROUBLE = SetupError("the inventory could not be read: mend it")


@pytest.mark.parametrize(("command", "told"), [("./hook", True), ("false", False)])
def test_the_failure_unit_learns_whether_everybody_was_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: str, told: bool
) -> None:
    monkeypatch.setattr(machine_test, "run_test", raising(TROUBLE))
    monkeypatch.setenv(installation.OWN, "a1")
    (here / "reports").mkdir()
    assert main(["nightly", "--on-fail", command]) == 3
    note = installation.find(here / "reports", {installation.OTHERS: "a1"})
    assert note == installation.FailureNote("a1", None, told)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TROUBLE, [str(TROUBLE)]),
        (ZeroDivisionError("division"), ["rigproof broke off: ", "ZeroDivisionError"]),
        (OSError(28, "No space left on device", "x"), ["rigproof broke off: ", "OSError"]),
    ],
    ids=["trouble as it is said", "an error of our own", "a full disk"],
)
def test_trouble_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: list[str]
) -> None:
    code, told = night(here, monkeypatch, error)
    (text,) = known(told)
    assert (code, [one for one in words if one not in text]) == (3, [])
    assert 'rigproof_run_verdict{verdict="UNJUDGED"} 1.0' in (here / "x.prom").read_text()


def test_a_machine_that_another_run_took_just_now_is_nobodys_trouble(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was set back while a run had the machine: nobody can tell since when it has it.
    Such a night is counted."""
    for held_s, counted in ((1199.0, False), (-1199.0, False), (-86400.0, True)):
        assert night(here, monkeypatch, lock.MachineBusy(None, held_s)) == (4, None)
        assert (here / "reports").exists() is counted
        assert counted or not (here / "x.prom").exists()


@pytest.mark.parametrize(
    "typed",
    [
        *(["nightly", *rest] for rest in (["--textfile", "x.txt"], ["--lang", "tlh"])),
        *([verb, "--profile", "none"] for verb in ("nightly", "accept")),
        ["accept", "--lang", "tlh"],
    ],
    ids=" ".join,
)
def test_where_no_run_comes_about_no_earlier_one_is_written_down(
    here: Path, typed: list[str]
) -> None:
    (here / "made").write_text("/an/earlier/run\n")
    assert main([*typed, "--run-dir-file", "made"]) == 2
    assert not (here / "made").exists()


def test_a_run_that_never_gives_the_machine_back_comes_to_light(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each such night is a run of its own, which leaves the other's alone, and the last of too
    many is a failure.
    """
    holder = Message("lock_holder", {"pid": 12, "run_dir": "reports/other"})
    monkeypatch.setattr(machine_test, "run_test", raising(lock.MachineBusy(holder, 7200.0)))
    monkeypatch.setenv(installation.OWN, "a1")
    other = here / "reports/other"
    other.mkdir(parents=True)
    with segment.Writer(other / reader.SUPERVISOR) as writer:  # a run of this machine that goes on
        writer.write(RunStarted("other", journals.plan(), {}, clock.machine_id()))
    (here / "reports/latest").symlink_to("other")
    before = sorted(path.name for path in other.iterdir())
    typed = ["nightly", "--station", "host", "--on-fail", "./hook", "--textfile", "x.prom"]
    typed += ["--most-skipped", "2", "--run-dir-file", "made"]
    assert main(typed) == 4
    unit = {installation.OTHERS: "a1"}
    assert installation.find(here / "reports", unit) is not None
    said = capsys.readouterr().out
    assert [one for one in ("process 12,", "reports/other", "2.0 h") if one not in said] == []
    assert not (here / "told").exists()
    assert "rigproof_nights_skipped 1\n" in (here / "x-nights.prom").read_text()
    assert main(typed) == 1
    told = json.loads((here / "told").read_text())
    assert told["skipped"]["in_a_row"] == 2
    assert sorted(path.name for path in other.iterdir()) == before
    assert (here / "reports/latest").resolve() == other
    folder = here / "reports" / told["run_id"]
    assert (here / "made").read_text() == f"{folder}\n"
    note = installation.find(here / "reports", unit)
    assert note == installation.FailureNote("a1", str(folder), True, told["headline"]["text"])
    suite = next(iter(JUnitXml.fromstring((folder / "junit.xml").read_bytes())))
    failures = [one for case in suite for one in case.result if isinstance(one, Failure)]
    assert [one.message for one in failures if "2.0 h" in one.message]


def test_a_folder_of_runs_whose_name_is_no_utf_8_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = here / os.fsdecode(b"n\xff")
    there.mkdir()
    monkeypatch.chdir(there)

    monkeypatch.setattr(machine_test, "run_test", raising(lock.MachineBusy(None, 7200.0)))
    monkeypatch.setenv(installation.OWN, "a1")
    assert main(["nightly", "--station", "host", "--run-dir-file", "made"]) == 2
    assert not (there / "made").exists()


def test_settings_are_looked_at_before_anything(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine_test, "run_test", lambda *_: pytest.fail("a run was begun"))
    for option, words in (
        (["--textfile", "x.txt"], "--textfile x.txt: "),
        (["--on-fail", "no-such-program"], "no-such-program is not installed"),
        (["--webhook", "nowhere"], "that is no address"),
        (["--webhook-secret-file", "hook"], "give both or neither"),
        (["--run-dir-file", "."], "--run-dir-file .: cannot be written ("),
    ):
        assert main(["nightly", *option]) == 2
        said = capsys.readouterr().err
        assert (words in said, said.count("\n")) == (True, 1)
