"""The schedule under a systemd of its own: installed, started, failed, killed, skipped, held
back, and gone without a trace.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from executable import executable

from acceptance.process import command
from acceptance.process.deadline import Deadline

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]
SYSTEMD = Path("/lib/systemd/systemd")
HOOK = """#!/bin/sh
text=$(grep '"text"')
printf 'told %s %s: %s\\n' "$RIGPROOF_VERDICT" "$*" "${text##*\\"text\\": }" >>"$(dirname "$0")/told"
"""  # noqa: E501


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What was seen at each step."""
    if os.geteuid() != 0 or not SYSTEMD.exists() or shutil.which("unshare") is None:
        pytest.skip("a systemd of its own needs root, systemd and unshare")
    folder = tmp_path_factory.mktemp("systemd")
    (folder / "home").mkdir()
    (folder / "box.toml").write_text("schema = 7\n")
    executable(folder / "hook", HOOK)
    script = Path(__file__).with_name("under_systemd.sh")
    done = command.run(
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "sh",
            str(script),
        ],
        deadline=Deadline.after(240.0),
        env={
            "FOLDER": str(folder),
            "RIGPROOF": str(Path(sys.executable).with_name("rigproof")),
            "SYSTEMD": str(SYSTEMD),
        },
    )
    if "unshare failed" in done.stderr or "Operation not permitted" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr + (folder / "systemd.log").read_text()
    steps: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("# "):
            steps[line[2:]] = found = []
        else:
            found.append(line)
    assert "end" in steps
    return steps


UNITS = ".config/systemd/user"


def test_the_timer_is_due(played: dict[str, list[str]]) -> None:
    timer, *files = played["installed"]
    assert timer.split() == ["rigproof-nightly.timer", "rigproof-nightly.service"]
    assert files == [
        f"{UNITS}/rigproof-nightly-failed.service",
        f"{UNITS}/rigproof-nightly.service",
        f"{UNITS}/rigproof-nightly.timer",
        f"{UNITS}/timers.target.wants/rigproof-nightly.timer",
        ".local/share/systemd/timers/stamp-rigproof-nightly.timer",
    ]


def test_what_keeps_a_night_from_beginning_is_told_with_the_words_that_were_given(
    played: dict[str, list[str]],
) -> None:
    failed, told = played["the machine file is wrong"]  # by the night itself, and not a second time
    assert failed == "failed"
    assert told.startswith(
        'told UNJUDGED two words 50% $HOME: "box.toml, line 1: schema 7 is newer than this rigproof'
    )


def test_a_night_that_was_killed_is_told(played: dict[str, list[str]]) -> None:
    (line,) = played["killed"]
    assert "the nightly run was ended before its verdict (signal, signal KILL)" in line


def test_a_failure_that_the_run_has_told_is_not_told_again(played: dict[str, list[str]]) -> None:
    assert played["FAIL, which the run has told itself"] == ["failed"]


def test_an_exit_code_alone_proves_no_telling(played: dict[str, list[str]]) -> None:
    failed, told = played["exit code 1, and nobody was told"]
    assert failed == "failed"
    assert "the nightly run did not come to a verdict (exit code 1)" in told


def test_a_skipped_night_is_no_failure(played: dict[str, list[str]]) -> None:
    assert played["skipped"] == ["no failure"]


def test_a_night_can_be_held_back(played: dict[str, list[str]]) -> None:
    assert played["held back"] == ["not started"]


def test_nothing_is_left(played: dict[str, list[str]]) -> None:
    assert played["uninstalled"] == []
