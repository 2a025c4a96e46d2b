"""The README in two languages: whoever changes one is told to change the other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, CHINESE = (ROOT / name for name in ("README.md", "README.zh-CN.md"))
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)]+)\)")


def read(path: Path) -> tuple[list[str], str]:
    """The code blocks, and the prose without them."""
    text = path.read_text(encoding="utf-8")
    return _BLOCK.findall(text), _BLOCK.sub("", text)


def headings(path: Path) -> list[int]:
    return [
        len(line) - len(line.lstrip("#"))
        for line in read(path)[1].splitlines()
        if line.startswith("#")
    ]


def tables(path: Path) -> list[int]:
    return [line.count("|") for line in read(path)[1].splitlines() if line.startswith("|")]


def words(path: Path) -> set[str]:
    """What stands between backticks: commands, keys, names."""
    return set(re.findall(r"`([^`]+)`", read(path)[1]))


def test_both_have_the_same_parts() -> None:
    assert headings(ENGLISH) == headings(CHINESE)
    assert tables(ENGLISH) == tables(CHINESE)
    assert read(ENGLISH)[0] == read(CHINESE)[0], (
        "what is typed and what it prints is the same in every language"
    )


def test_both_name_the_same_things() -> None:
    assert words(ENGLISH) == words(CHINESE)


def test_both_lead_to_the_same_pages_and_to_each_other() -> None:
    english, chinese = (_LINK.findall(read(path)[1]) for path in (ENGLISH, CHINESE))
    assert english[0] == CHINESE.name
    assert chinese[0] == ENGLISH.name
    assert english[1:] == chinese[1:]
    for target in english[1:]:
        assert (ROOT / target).exists(), target


def test_the_figures_are_the_same() -> None:
    """35 sheets, seven formats: a figure that changes in one must change in the other."""
    numbers = [
        re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", read(path)[1])
        for path in (ENGLISH, CHINESE)
    ]
    assert sorted(numbers[0]) == sorted(numbers[1])


def test_the_modules_that_must_be_covered_whole_exist() -> None:
    """Coverage ignores a name without a file: a module that moved would fall out in silence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    report = project["tool"]["coverage"]["report"]
    named = [*report["include"], *report["omit"]]
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.glob(name))] == []
