from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from test_every_limit import DEFAULTS, SOURCES, collected

from acceptance import fixtures
from acceptance.judge import advice
from acceptance.judge.advice import AdviceFileError

ENTRY = '[[cause]]\nmeasurements = ["a", "b"]\ncauses = ["one", "two; three"]\nnext = "lspci -nn"\n'
SHIPPED = sorted(fixtures.locate("causes").glob("*.toml"))


def write(folder: Path, text: str) -> Path:
    path = folder / "xx.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_family_shares_its_entry_and_its_parts_come_back(tmp_path: Path) -> None:
    found = advice.read(write(tmp_path, ENTRY))
    assert found == dict.fromkeys("ab", "likely: one; two; three. Next: lspci -nn")
    assert advice.parts(found["a"]) == (("likely", "one; two; three"), ("next", "lspci -nn"))


def test_what_names_no_causes_is_what_to_do() -> None:
    assert advice.parts("Reset the GPU.") == (("next", "Reset the GPU."),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ENTRY + ENTRY, "a stands twice"),
        (ENTRY.replace('"b"', '"a"'), "a stands twice"),
        (ENTRY + "worst = 1\n", "unknown field `worst`"),
        ("language = 'en'\n" + ENTRY, "unknown field `language`"),
        (ENTRY.replace("next", "then"), "missing required field `next`|unknown field `then`"),
        (ENTRY.replace('["a", "b"]', "[]"), "length >= 1"),
        (ENTRY.replace(', "two; three"', ""), "length >= 2"),
        (ENTRY.replace('"one"', '"1", "2", "3", "4"'), "length <= 4"),
        (ENTRY.replace('"one"', '""'), "matching regex"),
        (ENTRY.replace('"one"', '" one"'), "matching regex"),
        (ENTRY.replace('"one"', '"one\\ntwo"'), "matching regex"),
        (ENTRY.replace('"one"', '"one\\n"'), "matching regex"),
        (ENTRY.replace('"one"', "1"), "Expected `str`"),
        ("", "missing required field `cause`"),
        ("[[cause", "at end of document"),
    ],
)
def test_a_wrong_file_names_itself_and_the_entry(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(AdviceFileError, match=told) as caught:
        advice.read(write(tmp_path, text))
    assert str(caught.value).startswith("xx.toml: ")


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(AdviceFileError, match=r"^none.toml: cannot be read \(No such file or directory\): install"):
        advice.read(tmp_path / "none.toml")
    (tmp_path / "xx.toml").write_bytes(b"\xff")
    with pytest.raises(AdviceFileError, match=r"^xx.toml: "):
        advice.read(tmp_path / "xx.toml")


# --- what is shipped ---


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_every_measurement_has_its_causes_and_nothing_else_has(file: Path) -> None:
    measured = {measures.name for check in collected() for measures in check.measures}
    assert set(advice.read(file)) == measured
    limited = {one.measurement for found in (DEFAULTS.entries, *SOURCES.values()) for one in found if one.limit}
    assert limited <= measured


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_what_is_next_is_a_command_line_that_comes_back_whole(file: Path) -> None:
    for told in advice.read(file).values():
        (likely, causes), (following, command) = advice.parts(told)
        assert (likely, following) == ("likely", "next")
        assert f"likely: {causes}. Next: {command}" == told
        assert len(causes.split("; ")) in (2, 3, 4)
        assert not causes.endswith(".")
        assert shlex.split(command)[0] in {
            "cat", "grep", "ip", "ls", "lsblk", "lscpu", "lspci", "nvidia-smi", "ps", "sudo", "top", "uname",
        }  # fmt: skip
