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


def test_what_is_typed_and_what_it_prints_is_the_same_in_both() -> None:
    assert read(ENGLISH)[0] == read(CHINESE)[0]


def test_both_lead_to_the_same_pages_and_to_each_other() -> None:
    english, chinese = (_LINK.findall(read(path)[1]) for path in (ENGLISH, CHINESE))
    assert english[0] == CHINESE.name
    assert chinese[0] == ENGLISH.name
    assert english[1:] == chinese[1:]
    for target in english[1:]:
        assert (ROOT / target).exists(), target


def test_the_cards_on_which_it_has_run_are_those_of_the_recorded_runs() -> None:
    found = {path.name for path in ROOT.glob("fixtures/recordings/*/runs/*x*-*")}
    machines = {re.match(r"(\d+)x([a-z0-9]+)-", name) for name in found} - {None}
    counts, cards = ({one[part] for one in machines if one} for part in (1, 2))
    assert counts == {"1", "2"}, "the README says: one and two, and none of eight"
    for page, sentence in (
        (ENGLISH, r"has run on one and two (.*?), in"),
        (CHINESE, r"两块 (.*?) 上"),
    ):
        (told,) = re.findall(sentence, page.read_text(encoding="utf-8"))
        assert set(re.findall(r"[A-Z]\d+", told)) == {card.upper() for card in cards}


def test_the_modules_that_must_be_covered_whole_exist() -> None:
    """Coverage ignores a name without a file: a module that moved would fall out in silence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    report = project["tool"]["coverage"]["report"]
    named = [*report["include"], *report["omit"]]
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.glob(name))] == []
