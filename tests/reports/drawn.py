"""A report as its readers see it, on a terminal and as a page."""

from __future__ import annotations

import io

import pages
from lxml.html import HtmlElement
from rich.console import Console

from acceptance.core.language import ENGLISH, Language
from acceptance.reports import report_terminal
from acceptance.reports.page import report_page
from acceptance.reports.report import Report, Table
from acceptance.reports.terminal import Terminal

ALLOWED = {
    *(
        "a",
        "body",
        "code",
        "details",
        "div",
        "figcaption",
        "figure",
        "h1",
        "h2",
        "h3",
        "head",
        "header",
    ),
    *("html", "li", "main", "meta", "nav", "p", "path", "section", "span", "style", "summary"),
    *("svg", "table", "tbody", "td", "th", "thead", "title", "tr", "ul"),
}
ATTRIBUTES = {
    *("aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "content", "d", "href"),
    *("http-equiv", "id", "lang", "name", "preserveaspectratio", "role", "scope", "tabindex"),
    "viewbox",
}


class Watched(io.StringIO):
    """A terminal as far as programs ask."""

    def isatty(self) -> bool:
        return True


def piped(language: Language = ENGLISH) -> tuple[Terminal, io.StringIO]:
    out = io.StringIO()
    return Terminal(Console(file=out, highlight=False), language), out


def watched(width: int) -> tuple[Terminal, io.StringIO]:
    out = Watched()
    environment = {"TERM": "xterm-256color", "COLUMNS": str(width)}
    console = Console(
        file=out, highlight=False, width=width, _environ=environment, force_terminal=True
    )
    return Terminal(console), out


def lines(report: Report, language: Language = ENGLISH) -> list[str]:
    """The lines of a terminal, with one blank between two words."""
    terminal, out = piped()
    report_terminal.show(report, terminal, language)
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def window(report: Report, width: int) -> str:
    """What is written to a window of so many columns, colours included."""
    terminal, out = watched(width)
    report_terminal.show(report, terminal)
    return out.getvalue()


def page(report: Report, language: Language = ENGLISH, *packages: str) -> HtmlElement:
    return pages.page(report_page.render(report, language, *packages))


def rows(report: Report, heading: str) -> list[str]:
    """The rows of the table below this heading of the page."""
    (section,) = page(report).xpath(f".//section[h2 = '{heading}']")
    return [pages.words(row) for row in section.xpath(".//tbody/tr")]


def cells(table: Table) -> list[tuple[str, ...]]:
    """The texts of a table."""
    return [tuple(row.cells) for row in table.rows]


def assert_harmless(report: Report, *packages: str) -> None:
    """Nothing that comes from outside is more than text, on a terminal and on a page."""
    terminal, out = piped()
    report_terminal.show(report, terminal)
    shown, drawn = out.getvalue(), report_page.render(report, ENGLISH, *packages)
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
    assert not {"\x7f", "\x9b"} & set(shown)
    pages.assert_inert(drawn, ALLOWED, ATTRIBUTES)
    assert max(len(text.encode("utf-8")) for text in (shown, drawn)) < 400_000
