"""What the shell scripts say, with stubs in place of the programs they ask."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cases import each
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


GROUP = "sudo usermod -aG docker ada"
CURE = "an engine runs and refuses this user; what lets you in: `sudo usermod -aG"


@each(
    "docker, id_, user, code, told, hinted",
    [
        (REFUSES, "echo 1000", "", 2, CURE, True),
        ("exit 1", "echo 1000", "", 2, "the engine needs root: run `sudo make engine`", True),
        *(
            ("echo 20.10", f'[ "$1" = -u ] && echo 0 || echo {groups}', "ada", 0, GROUP, hinted)
            for groups, hinted in (("adm sudo", True), ("adm docker", False), ("root", False))
        ),
    ],
)
def test_an_engine_that_refuses_is_not_installed_again_and_its_user_is_told_how(
    tmp_path: Path, docker: str, id_: str, user: str, code: int, told: str, hinted: bool
) -> None:
    found, said = engine(tmp_path, {"docker": docker, "id": id_}, SUDO_USER=user)
    assert (found, told in said) == (code, hinted), said
    assert code == 0 or said.count("\n") == 1
