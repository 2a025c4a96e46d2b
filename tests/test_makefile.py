"""The Makefile refuses settings that it does not know."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

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
    done = made("acept")
    assert done.returncode == 2 or "exit 2" in done.stdout  # with -n make shows what it would do
    assert "there is no command acept: did you mean accept?" in done.stdout + done.stderr
    far = made("xyzzy")
    assert "did you mean" not in far.stdout + far.stderr
    phony = set(re.search(r"COMMANDS := ((?:.*\\\n)*.*)", MAKEFILE)[1].replace("\\", "").split())  # type: ignore[index]
    helped = {
        goal
        for goals in re.findall(r"(?m)^([a-z0-9 -]+):.*## ", MAKEFILE)
        for goal in goals.split()
    }
    assert phony == helped


def test_what_is_a_setting_is_taken() -> None:
    done = made("smoke", "MACHINE=a b.toml", "-j2", "https_proxy=x", "RIGPROOF_TESTS=all")
    assert (done.returncode, done.stderr) == (0, "")
    assert '--machine "a b.toml"' in done.stdout
    assert made("help", MACHNE="of the environment").returncode == 0


def test_a_plan_for_a_declared_machine_is_no_test_of_this_one() -> None:
    done = made("plan", "AS=a b.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert '--as "a b.toml"' in done.stdout
    assert "--as" not in made("plan").stdout  # make has a variable AS of its own
    assert "--as" not in made("plan", AS="/usr/bin/as").stdout
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


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_on_or_off(name: str) -> None:
    goal, option = SWITCHES[name]
    for value, on in (("1", True), ("0", False), ("", False), (" ", False)):
        done = made(goal, f"{name}={value}")
        assert (done.returncode, option in done.stdout) == (0, on), value
        assert (option in made(goal, **{name: value}).stdout) is on, value
    for value in ("yes", "no", "2", "00"):
        done = made(goal, f"{name}={value}")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{name}={value}: give 1 for on; 0 or nothing is off" in done.stderr


def test_every_switch_is_tried() -> None:
    (known,) = re.findall(r"^SWITCHES := (.*)", MAKEFILE, re.MULTILINE)
    (told,) = re.findall(r"'settings: (.*?)\n\n", MAKEFILE, re.DOTALL)
    assert set(known.split()) == set(SWITCHES) >= set(re.findall(r"\b([A-Z_]+)=1\b", told))


def test_a_draft_and_json_are_refused_together_by_the_command_line() -> None:
    assert '--write "x.toml" --json' in made("inventory", "MACHINE=x.toml", "JSON=1").stdout


def test_every_setting_is_known() -> None:
    (known,) = re.findall(r"^SETTINGS := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    (told,) = re.findall(r"'settings: (.*?)\n\n", MAKEFILE, re.DOTALL)
    used = {*re.findall(r"^([A-Z_]+) +\?=", MAKEFILE, re.MULTILINE)}
    used |= {*re.findall(r"\b([A-Z_]{2,})=", told)}
    assert used <= set(known.replace("\\", "").split())
