"""The Makefile refuses settings that it does not know."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cases import each
from thoroughness import ALL

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def made(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-n", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("given", ["MACHNE=tower.toml", "machine=tower.toml", "MACHNE="])
def test_a_misspelt_setting_is_refused_before_anything_runs(given: str) -> None:
    done = made("accept", given)
    assert (done.returncode, done.stdout) == (2, "")
    name = given.partition("=")[0]
    assert f"{name} is no setting of rigproof: did you mean MACHINE? the settings " in done.stderr


def test_a_misspelt_command_names_the_nearest() -> None:
    done, far = made("acept"), made("xyzzy")
    assert done.returncode == 2 or "exit 2" in done.stdout  # with -n make shows what it would do
    assert "there is no command acept: did you mean accept?" in done.stdout + done.stderr
    assert "did you mean" not in far.stdout + far.stderr
    (listed,) = re.findall(r"COMMANDS := ((?:.*\\\n)*.*)", MAKEFILE)
    helped = re.findall(r"(?m)^([a-z0-9 -]+):.*## ", MAKEFILE)
    assert set(listed.replace("\\", "").split()) == set(" ".join(helped).split())


@each(
    "typed, option",
    [
        (["smoke", "MACHINE=a b.toml", "-j2", "https_proxy=x"], '--machine "a b.toml"'),
        (["smoke", "MACHINE=a b.toml", "RIGPROOF_TESTS=all"], '--machine "a b.toml"'),
        (["plan", "AS=a b.toml"], '--as "a b.toml"'),
        (["inventory", "MACHINE=x.toml", "JSON=1"], '--write "x.toml" --json'),
    ],
)
def test_what_is_a_setting_is_taken(typed: list[str], option: str) -> None:
    done = made(*typed)
    assert (done.returncode, done.stderr, option in done.stdout) == (0, "", True)


def test_a_plan_for_a_declared_machine_is_no_test_of_this_one() -> None:
    assert made("help", MACHNE="of the environment").returncode == 0
    for environment in ({}, {"AS": "/usr/bin/as"}):  # make has a variable AS of its own
        assert "--as" not in made("plan", **environment).stdout
    for command in ("accept", "smoke", "inventory"):
        refused = made(command, "AS=a b.toml")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "MACHINE=a b.toml" in refused.stderr


SWITCHES = {
    "FAIL_FAST": ("accept", "--fail-fast"),
    "REPLACE": ("baseline", "--replace"),
    "JSON": ("inventory", "--json"),
    "USER_UNIT": ("nightly-uninstall", "--user"),
    "COLD": ("bench", "--cold"),
    "COVER": ("test", "coverage report"),
}


@each("name", SWITCHES)
def test_a_switch_is_on_or_off(name: str) -> None:
    goal, option = SWITCHES[name]
    values = [("1", True), ("0", False), ("", False), (" ", False)]
    for value, on in values if name == "FAIL_FAST" or ALL else values[:2]:
        done = made(goal, f"{name}={value}")
        assert (done.returncode, option in done.stdout) == (0, on), value
        assert (option in made(goal, **{name: value}).stdout) is on, value
    for value in ("yes", "no", "2", "00") if name == "FAIL_FAST" or ALL else ():
        done = made(goal, f"{name}={value}")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{name}={value}: give 1 for on; 0 or nothing is off" in done.stderr


def test_every_switch_is_tried_and_every_setting_known() -> None:
    known, switches = (
        set(re.findall(rf"^{name} := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)[0].split())
        for name in ("SETTINGS", "SWITCHES")
    )
    (told,) = re.findall(r"'settings: (.*?)\n\n", MAKEFILE, re.DOTALL)
    assert switches == set(SWITCHES) >= set(re.findall(r"\b([A-Z_]+)=1\b", told))
    used = {*re.findall(r"^([A-Z_]+) +\?=", MAKEFILE, re.MULTILINE)}
    assert used | {*re.findall(r"\b([A-Z_]{2,})=", told)} <= known
