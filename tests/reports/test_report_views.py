"""A report of every kind of part, drawn on a terminal and as a page."""

from __future__ import annotations

import drawn
import pages
import translated
from cases import each

from acceptance.reports.page import report_page
from acceptance.reports.report import Answer, Items, Line, Report, Row, Section, Table

COMMAND = "rigproof accept --machine " + "x" * 100
TABLE = Table(
    (
        Row(("one", "5", "text"), "bad", {1: "small print"}),
        Row(("two", "500", "word " * 20), "good"),
        Row(("three", "50", "text"), values=(1.0, 2.0, 3.0)),
    ),
    ("name", "value", "more", "values"),
    (1,),
)


def made(*parts: Line | Items | Answer | Table) -> Report:
    sections = (Section("", parts), Section("First", parts, "other"), Section("Last", ()))
    return Report("A title", sections, Line("The end", "bad"))


EVERYTHING = made(
    Line("A sentence of many words that a narrow window has to break somewhere."),
    Line(COMMAND, exact=True),
    Items([f"item {number}" for number in range(300)]),
    Answer("How long", "5 days", ("because",)),
    TABLE,
)


def test_a_terminal_ends_with_the_closing_line_and_sets_sections_apart() -> None:
    shown = drawn.lines(EVERYTHING)
    assert shown[-3:] == ["", "Last", "The end"]
    assert shown[shown.index("First") - 1] == ""
    assert "A title" not in shown
    assert shown[shown.index("How long: 5 days") + 1] == "because"


def test_a_page_begins_with_the_closing_line() -> None:
    shown = drawn.page(EVERYTHING)
    assert pages.words(shown.find(".//h1")) == "The end"
    assert pages.words(drawn.page(Report("A title", ())).find(".//h1")) == "A title"
    (first,) = shown.xpath(".//h2[. = 'First']")
    assert shown.xpath(f".//section[@aria-labelledby = '{first.get('id')}']")
    names = [table.getparent().get("aria-label") for table in shown.iter("table")]
    assert names == ["A title", "First"]
    assert all(head.get("scope") for head in shown.iter("th"))
    rows = (Row(("1",)), Row(()), Row(("1", "2")))
    table = drawn.page(made(Table(rows, head=("a", "b")))).find(".//table")
    assert [pages.words(one) for one in table.findall("thead//th")] == ["a", "b"]
    assert len(table.findall("tbody/tr")) == 3, "a row without cells breaks no page"
    three = Report("x", tuple(Section(name, ()) for name in "abc"))
    told = report_page.render(three, translated.language({"Contents": "Inhalt"}, "zh-CN"))
    assert [text in told for text in ('<html lang="zh-CN">', "Inhalt")] == [True, True]


def test_an_endless_list_is_cut_and_says_so() -> None:
    shown = drawn.lines(made(Items([f"item {number}" for number in range(300)])))
    assert shown[18:21] == ["item 18", "item 19", "and 280 more"]
    page = drawn.page(made(Items([f"item {number}" for number in range(300)])))
    (first, _) = page.xpath(".//section[ul]")
    assert (len(first.xpath("ul/li")), len(first.xpath("details/ul/li"))) == (20, 180)
    assert "and 100 more" in pages.words(page)
    few = drawn.lines(made(Items(["item"] * 20)))
    assert not any("more" in line for line in few)


@each("width", [120, 60, 30])
def test_a_narrow_terminal_breaks_lines_and_loses_nothing(width: int) -> None:
    shown = drawn.window(EVERYTHING, width)
    assert COMMAND in shown, "a command is never broken"
    letters = "".join(part for part in shown if part.isalnum())
    assert [one for one in ("500", "somewhere", "280", "three") if one not in letters] == []


def test_a_tone_is_a_colour_small_print_for_a_page_and_letters_for_a_terminal() -> None:
    lines = drawn.window(made(TABLE), 120).splitlines()
    for style, name in (("\x1b[1;31m", "one"), ("\x1b[32m", "two")):
        assert any(style in line for line in lines if name in line)
    terminal, page = "\n".join(drawn.lines(made(TABLE))), pages.words(drawn.page(made(TABLE)))
    for text, on_terminal in (("small print", False), ("▁", True)):
        assert (text in terminal, text in page) == (on_terminal, not on_terminal)
