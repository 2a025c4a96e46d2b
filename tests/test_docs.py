"""The pages: every link leads to a file, and every anchor to a heading of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
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


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_leads_somewhere(path: Path) -> None:
    # towncrier gathers the fragments into a file beside the README.
    folder = ROOT if path.parent.name == "changelog.d" and path.name != "README.md" else path.parent
    for target in links(path):
        name, _, anchor = target.partition("#")
        there = (folder / name).resolve() if name else path
        assert there.exists(), f"{target}: there is no such file"
        if anchor:
            assert anchor in anchors(there), f"{target}: there is no such heading"
