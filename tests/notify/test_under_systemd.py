"""The schedule under a systemd of its own: installed, started, failed, killed, skipped, held
back, and gone without a trace.
"""

from __future__ import annotations

import os
import re
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


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        (
            "the machine file is wrong",  # told by the night itself, and not a second time
            ["failed", r"told UNJUDGED two words 50% \$HOME: \"box.toml, line 1: schema 7 .*"],
        ),
        ("killed", [r".*was ended before its verdict \(signal, signal KILL\).*"]),
        ("FAIL, which the run has told itself", ["failed"]),
        ("exit code 1, and nobody was told", ["failed", r".*verdict \(exit code 1\).*"]),
        ("skipped", ["no failure"]),
        ("held back", ["not started"]),
        ("uninstalled", []),
    ],
)
def test_what_a_night_comes_to(played: dict[str, list[str]], step: str, lines: list[str]) -> None:
    assert len(played[step]) == len(lines)
    assert all(map(re.fullmatch, lines, played[step])), played[step]
