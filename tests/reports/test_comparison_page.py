"""A comparison as a page."""

from __future__ import annotations

import compared_samples
import pages
import translated
from cases import each
from pages import page, words
from test_junit import HOSTILE
from thoroughness import some

from acceptance.reports import comparison_page

ALLOWED = {
    "body",
    "div",
    "h1",
    "h2",
    "head",
    "header",
    "html",
    "li",
    "main",
    "meta",
    "p",
    "section",
    "style",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
}
ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "class",
    "scope",
    "role",
    "aria-label",
    "tabindex",
}


def assert_inert(text: str) -> None:
    pages.assert_inert(text, ALLOWED, ATTRIBUTES)


def rows(text: str, heading: str) -> list[str]:
    """The lines of the table below this heading."""
    (section,) = page(text).xpath(f".//section[h2 = '{heading}']")
    return [words(row) for row in section.xpath(".//tbody/tr")]


def test_what_is_worse_stands_first() -> None:
    text = comparison_page.render(compared_samples.one_machine())
    assert words(page(text).find(".//h1")) == (
        "WORSE than A: measurements: 2 worse, 1 better, 1 changed; outcomes: 2 worse"
    )
    assert rows(text, "The runs") == [
        "A reports/one box PASS smoke 90 s",
        "B reports/two box FAIL smoke 7 min",
    ]
    assert rows(text, "Measurements outside the noise") == [
        "worse vram_miscompares vram.patterns gpu0 count 0 2 (+2) none",
        "worse copy_h2d link.copy gpu0 GB/s 200 150 (-25.0 %) ± 3 %",
        "changed cpu_temperature watch.heat cpu \u00b0C 50 70 (+40.0 %) ± 8 \u00b0C",
        "better copy_h2d link.copy gpu1 GB/s 200 220 (+10.0 %) ± 3 %",
    ]
    assert rows(text, "What the runs do not have in common") == [
        "machine kernel 6.1 6.2",
        "gpu0 vbios 96 -",
    ]
    (copied,) = [row for row in rows(text, "All other measurements") if "burn_copied" in row]
    assert copied.startswith("not compared burn_copied")
    assert "how much was done" in copied


def test_nothing_is_shown_of_what_there_is_not() -> None:
    text = comparison_page.render(compared_samples.moved())
    heads = [words(head) for head in page(text).iter("h2")]
    assert heads == ["The runs", "All other measurements"]
    assert "gpu2 is another part than in A (GPU-c there, GPU-x here)" in words(
        page(text).find(".//main")
    )


@each("text", some(HOSTILE, 4))
def test_hostile_text_is_inert(text: str) -> None:
    shown = comparison_page.render(compared_samples.hostile(text))
    assert_inert(shown)
    shown.encode("utf-8")
    assert len(shown) < 200_000


def test_every_table_has_a_name_and_its_heads_a_scope() -> None:
    shown = page(comparison_page.render(compared_samples.one_machine()))
    for table in shown.iter("table"):
        assert table.getparent().get("aria-label")
    assert all(head.get("scope") for head in shown.iter("th"))


def test_another_language() -> None:
    shown = comparison_page.render(
        compared_samples.one_machine(), translated.language({"The runs": "Läufe"}, "zh-CN")
    )
    assert '<html lang="zh-CN">' in shown
    assert "<h2>Läufe</h2>" in shown
