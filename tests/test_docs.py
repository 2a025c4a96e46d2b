"""The pages: every link leads to a file, and every anchor to a heading of it."""

from __future__ import annotations

import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from cases import each
from markdown_it import MarkdownIt

from acceptance.expect import sheet

ROOT = Path(__file__).resolve().parent.parent


def pages() -> list[Path]:
    """Every page that is in the repository."""
    named = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    found = [ROOT / name for name in named.split("\0") if name]
    assert len(found) > 30
    return found


def links(path: Path) -> Iterator[str]:
    """The targets of a page's links that lie in the repository."""
    for block in MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")):
        for token in block.children or ():
            target = str(token.attrs.get("href") or token.attrs.get("src") or "")
            if target and not re.match(r"[a-z]+:", target):
                yield target


@functools.cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: each word's letters, with dashes."""
    found: set[str] = set()
    tokens = MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8"))
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(part.content for part in inline.children or ())
            found.add(re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-"))
    return found


def test_the_sheet_on_the_page_about_cards_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs/adding-a-card.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "geforce-rtx-4090.toml"
    file.write_text(text, encoding="utf-8")
    assert sheet.read(file).pci_ids == ("10de:2684",)
    table = "".join(re.findall(r"^\| .*", page, re.MULTILINE))
    told = {*re.findall(r"`\[*([a-z0-9_]+)\]*`", table)}
    left = {"name", "architecture", "compute_capability", "source"}
    assert set(sheet.Sheet.__struct_fields__) - told <= left, "the table of keys"


@each("path", pages, told=lambda path: str(path.relative_to(ROOT)))
def test_each_link_leads_somewhere(path: Path) -> None:
    # towncrier gathers the fragments into a file beside the README.
    folder = ROOT if path.parent.name == "changelog.d" and path.name != "README.md" else path.parent
    for target in links(path):
        name, _, anchor = target.partition("#")
        there = (folder / name).resolve() if name else path
        assert there.exists(), f"{target}: there is no such file"
        assert not anchor or anchor in anchors(there), f"{target}: there is no such heading"


def test_the_readme_says_the_same_in_both_languages() -> None:
    """What is typed and what it prints, and the pages that it leads to."""
    english, chinese = (ROOT / name for name in ("README.md", "README.zh-CN.md"))
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    assert blocks.findall(english.read_text()) == blocks.findall(chinese.read_text())
    other, *rest = links(english)
    assert (other, [english.name, *rest]) == (chinese.name, list(links(chinese)))


def test_the_modules_that_must_be_covered_whole_exist() -> None:
    """Coverage ignores a name without a file: a module that moved would fall out in silence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    report = project["tool"]["coverage"]["report"]
    named = [*report["include"], *report["omit"]]
    assert len(named) > 20
    assert [name for name in named if not list(ROOT.glob(name))] == []
