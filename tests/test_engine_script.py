"""What the shell scripts say, with stubs in place of the programs they ask."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from executable import executable

ROOT = Path(__file__).resolve().parents[1]


def engine(folder: Path, stubs: dict[str, str], **variables: str) -> tuple[int, str]:
    """Exit code and standard error of scripts/engine."""
    for name, text in stubs.items():
        executable(folder / name, f"#!/bin/sh\n{text}\n")
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    done = subprocess.run(
        [ROOT / "scripts/engine"],
        env={"PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


REFUSES = "echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1"


@pytest.mark.parametrize(
    ("docker", "cure"),
    [
        (REFUSES, "an engine runs and refuses this user; what lets you in: `sudo usermod -aG"),
        ("exit 1", "the engine needs root: run `sudo make engine`"),
    ],
)
def test_an_engine_that_refuses_is_not_installed_again(
    tmp_path: Path, docker: str, cure: str
) -> None:
    code, told = engine(tmp_path, {"docker": docker, "id": "echo 1000"})
    assert (code, told.count("\n"), cure in told) == (2, 1, True), told


@pytest.mark.parametrize(
    ("groups", "hinted"), [("adm sudo", True), ("adm docker", False), ("root", False)]
)
def test_who_installed_it_is_told_how_to_use_it(tmp_path: Path, groups: str, hinted: bool) -> None:
    stubs = {"docker": "echo 20.10", "id": f'[ "$1" = -u ] && echo 0 || echo {groups}'}
    code, told = engine(tmp_path, stubs, SUDO_USER="ada")
    assert (code, "sudo usermod -aG docker ada" in told) == (0, hinted), told
