"""The completion, sourced by the shells themselves and asked as TAB asks."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cases import each

from acceptance import __main__ as rigproof
from acceptance.cli import completion
from acceptance.cli.parser import VERBS

PROFILES = {"smoke", "accept", "nightly", "train", "soak"}


@pytest.fixture
def script(tmp_path: Path) -> dict[str, Path]:
    files = {}
    for shell in completion.SHELLS:
        files[shell] = tmp_path / f"rigproof.{shell}"
        files[shell].write_text(completion.script(shell), encoding="utf-8")
    (tmp_path / "box.toml").write_text("", encoding="utf-8")
    (tmp_path / "reports/2026-11-27T10-00-00Z-1f3a").mkdir(parents=True)
    return files


def printed(script: Path, *argv: str) -> list[str]:
    """What a shell prints beside the script."""
    done = subprocess.run(
        argv, cwd=script.parent, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def asked_bash(script: Path, words: Sequence[str]) -> set[str]:
    """What bash offers for the last of the words."""
    text = (
        f"source {script}\n"
        f"COMP_WORDS=({' '.join(repr(one) for one in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n"
        "entry=$(complete -p rigproof); function=${entry#*-F }; function=${function%% *}\n"
        f'$function rigproof "{words[-1]}" "{words[-2]}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    return {line.strip() for line in printed(script, "bash", "--norc", "-c", text) if line.strip()}


def asked_fish(script: Path, words: Sequence[str]) -> set[str]:
    """What fish offers for the last of the words."""
    text = f"source {script}; complete -C '{' '.join(words)}'"
    return {one.partition("\t")[0] for one in printed(script, "fish", "--no-config", "-c", text)}


ASKED = [
    (["rigproof", ""], set(VERBS)),
    (["rigproof", "rep"], {"report", "replay"}),
    (["rigproof", "accept", "--profile", ""], PROFILES),
    (["rigproof", "plan", "--profile", "s"], {"smoke", "soak"}),
    (["rigproof", "nightly", "--station", ""], {"auto", "docker", "host"}),
    (["rigproof", "report", "--lang", ""], {"en", "zh-CN"}),
    (["rigproof", "accept", "--machine", "b"], {"box.toml"}),
    (["rigproof", "replay", "rep"], {"reports"}),
    (["rigproof", "fleet", ""], {"collect", "report", "submit", "pairs"}),
    (["rigproof", "completion", ""], {"bash", "zsh", "fish"}),
]


def test_bash_completes_verbs_options_and_values(script: dict[str, Path]) -> None:
    for words, due in ASKED:
        found = {one.rstrip("/") for one in asked_bash(script["bash"], words)}
        assert due <= found, (words, found)
    assert "--machine" in asked_bash(script["bash"], ["rigproof", "accept", "--m"])


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes_the_same(script: dict[str, Path]) -> None:
    for words, due in ASKED:
        found = {one.rstrip("/") for one in asked_fish(script["fish"], words)}
        assert due <= found, (words, found)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_takes_it_as_the_completion_of_rigproof(script: dict[str, Path]) -> None:
    text = (
        "autoload -Uz compinit; compinit -D -u; "
        f'eval "$(<{script["zsh"].as_posix()})"; print $_comps[rigproof]'
    )
    assert printed(script["zsh"], "zsh", "-f", "-c", text) == ["_shtab_rigproof"]


@each("shell", completion.SHELLS)
def test_the_verb_prints_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rigproof.main(["completion", shell]) == 0
    assert capsys.readouterr().out == completion.script(shell)


def test_another_shell_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert rigproof.main(["completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err
