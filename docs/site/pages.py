"""The pages of the site: the repository's Markdown files, unchanged, at their own places.

A hook of MkDocs. The site has the layout of the repository (`docs/start.md` becomes
`docs/start.html`, `README.md` the index), so a link works in both. What a page links to and is no
page of its own (a data file, a sample, a folder) becomes a page that shows the file or lists the
folder; only such links are rewritten.
"""

from __future__ import annotations

import logging
import posixpath
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

INCLUDED, NOT_IN_NAV = InclusionLevel.INCLUDED, InclusionLevel.NOT_IN_NAV
ROOT = Path(__file__).resolve().parent.parent.parent
# Pages outside docs/ that the navigation names.
OUTSIDE = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md")
# Shown by the browser as they are.
PICTURES = (".svg", ".png")
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
# Code that is no link, whatever it looks like.
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
# Parts of a page that must be the same wherever it is read.
PARTS = re.compile(r"<(h[1-6]|ul|ol|li|table|tr|pre|code|strong|em|img|blockquote)\b")
# What a browser would fetch from another host by itself.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|license))[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<object\b[^>]*\bdata=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(["']?(?:https?:)?//[^)]+"""
    r"""|@import\s+(?:url\()?["'](?:https?:)?//[^"')]+"""
    # The theme's script fetches a library for the first, and the count of stars for the second.
    r"""|class=["']?mermaid\b|data-md-component=["']?source\b"""
)


def on_startup(command: str, dirty: bool) -> None:
    """Show warnings and errors alone."""
    if command == "build":
        logging.getLogger("mkdocs").setLevel(logging.WARNING)


def on_files(files: Files, config: Any) -> Files:
    """The files of the site, in place of what MkDocs found in docs/.

    Raises:
        PluginError: a page links to a file that git does not have.
    """
    tracked = _tracked()
    site = Files([])
    for name in sorted(tracked):
        if name in OUTSIDE or (name.startswith("docs/") and not name.endswith(".py")):
            named = not name.startswith("docs/adr/0")  # the page of decisions lists these
            site.append(_copied(name, config, INCLUDED if named else NOT_IN_NAV))
    waiting = [file.src_uri for file in site]
    while waiting:
        name = waiting.pop()
        if not name.endswith(".md"):
            continue
        text = (ROOT / name).read_text(encoding="utf-8") if (ROOT / name).is_file() else ""
        for target in _targets(name, text):
            page = _page(target)
            if site.get_file_from_path(page):
                continue
            inside = [found for found in sorted(tracked) if found.startswith(target + "/")]
            if target in tracked and page == target:
                site.append(_copied(target, config, NOT_IN_NAV))
                waiting.append(target)
            elif target in tracked:
                site.append(_generated(page, _shown(target), config))
            elif inside:
                site.append(_generated(page, _listed(target, inside), config))
                for found in inside:
                    if not site.get_file_from_path(_page(found)):
                        site.append(_generated(_page(found), _shown(found), config))
            else:
                raise PluginError(f"{name} links to {target}, which is not in the repository")
    # The theme's own files.
    for file in files:
        if file.src_dir != config.docs_dir:
            site.append(file)
    return site


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """The page as it is, where the site shows the same lists, tables and code as GitHub.

    The two know different Markdown: the site's ends a list where GitHub's indents by two or three.

    Raises:
        PluginError: one of them shows more of a kind.
    """
    repository = MarkdownIt("commonmark").enable("table").render(page.markdown)
    for tag, count in (Counter(PARTS.findall(repository)) - Counter(PARTS.findall(html))).items():
        raise PluginError(
            f"{page.file.src_uri}: GitHub shows {count} <{tag}> more than the site: indent what is "
            "in a list by four, and leave a line empty before a list"
        )
    for tag, count in (Counter(PARTS.findall(html)) - Counter(PARTS.findall(repository))).items():
        raise PluginError(
            f"{page.file.src_uri}: the site shows {count} <{tag}> more than GitHub: indent what is "
            "in a list by four, and leave a line empty before a list"
        )
    return html


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """The page's text, with links to data files and folders that lead to the pages of these."""
    here = posixpath.dirname(page.file.src_uri)

    def rewritten(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, found[1]))
        return posixpath.relpath(_page(target), here or ".")

    return "".join(
        part if is_code else LINK.sub(rewritten, part) for part, is_code in _parts(markdown)
    )


def on_post_build(config: Any) -> None:
    """Hold the built site against its promise: nothing is fetched when it is read.

    Raises:
        PluginError: a page or style would fetch something, or there is no page.
    """
    built = [path for path in Path(config.site_dir).rglob("*") if path.suffix in (".html", ".css")]
    if len(built) < 30:
        raise PluginError(f"{config.site_dir} has {len(built)} pages and styles: some are missing")
    for path in built:
        found = FETCHED.search(path.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{path} would fetch something when it is read: {found[0]}")


def _tracked() -> set[str]:
    """The files of the repository; what is new and not ignored counts."""
    given = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    named = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in named.split("\0") if name and (ROOT / name).is_file()}


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """The text in parts, each with whether it is code."""
    end = 0
    for code in CODE.finditer(text):
        yield text[end : code.start()], False
        yield code[0], True
        end = code.end()
    yield text[end:], False


def _targets(name: str, text: str) -> Iterator[str]:
    """What a page links to in the repository, by its path there."""
    for part, is_code in _parts(text):
        for target in () if is_code else LINK.findall(part):
            yield posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def _page(target: str) -> str:
    """The path of the page for a path of the repository: itself, or one that is made."""
    path = ROOT / target
    if path.is_dir():
        readme = f"{target}/README.md"
        return readme if (ROOT / readme).is_file() else f"{target}/index.md"
    return target if path.suffix in (".md", *PICTURES) else f"{target}.md"


def _copied(name: str, config: Any, inclusion: InclusionLevel) -> File:
    """A file of the repository, as it is."""
    return File(name, str(ROOT), config.site_dir, use_directory_urls=False, inclusion=inclusion)


def _generated(page: str, text: str, config: Any) -> File:
    """A page that the site makes; search leaves it out."""
    content = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
    return File.generated(config, page, content=content, inclusion=NOT_IN_NAV)


def _shown(name: str) -> str:
    """A page that shows a text file."""
    text = (ROOT / name).read_text(encoding="utf-8")
    kind = {"": "text", ".yml": "yaml"}.get(Path(name).suffix, Path(name).suffix[1:])
    return f"# {name}\n\n````{kind}\n{text.rstrip()}\n````\n"


def _listed(folder: str, inside: list[str]) -> str:
    """A page that lists the files of a folder."""
    lines = (f"- [{found[len(folder) + 1 :]}]({found[len(folder) + 1 :]})" for found in inside)
    return f"# {folder}/\n\n" + "\n".join(lines) + "\n"
