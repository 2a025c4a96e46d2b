"""A machine's nights as a page."""

from __future__ import annotations

import re

import translated
import trend_reports
from cases import each
from lxml import html as lxml_html
from test_junit import HOSTILE
from thoroughness import some

from acceptance.history import trend
from acceptance.history.trend import TrendPoint, TrendReport, TrendSeries
from acceptance.reports.page import nights, trends

ALLOWED = {
    "body",
    "div",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "head",
    "header",
    "html",
    "main",
    "meta",
    "p",
    "path",
    "section",
    "span",
    "style",
    "svg",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "title",
    "tr",
}
ATTRIBUTES = {
    "lang",
    "charset",
    "name",
    "content",
    "http-equiv",
    "class",
    "scope",
    "role",
    "aria-label",
    "aria-labelledby",
    "aria-hidden",
    "id",
    "tabindex",
    "viewbox",
    "preserveaspectratio",
    "d",
}
PLACES = {f"run-{number}": number for number in range(trend_reports.NIGHTS)}


def page(text: str) -> lxml_html.HtmlElement:
    return lxml_html.document_fromstring(text)


def words(element: lxml_html.HtmlElement) -> str:
    return " ".join(" ".join(element.xpath(".//text()[not(parent::style)]")).split())


def test_what_changed_most_then_a_plot_for_each() -> None:
    shown = page(nights.render(trend_reports.machine()))
    assert "machine 0123abcd: 40 nights recorded" in words(shown.find(".//header"))
    (table,) = shown.iter("table")
    assert [words(row) for row in table.iter("tr")][
        1
    ] == "copy_h2d gpu0 GB/s 23 50 0.1 46.2 ↓ 1 -8.0 %"
    figures = list(shown.iter("figure"))
    assert [words(figure.find("figcaption")) for figure in figures] == [
        "copy_h2d gpu0 GPU-a",
        "copy_h2d gpu1 GPU-b",
        "copy_d2h gpu0",
        "copy_d2h gpu1",
    ]
    assert "median 50 GB/s, MAD 0.1; last 46.2; 23 nights, 1 outside" in words(figures[0])
    assert "run-12: driver: 580.1 -> 590.2; time of burn: 20 s -> 30 s" in words(figures[2])
    kinds = [[path.get("class") for path in figure.iter("path")] for figure in figures]
    assert kinds[0] == ["median", "born", "line", "mark apart", "mark"]
    assert kinds[1] == ["median", "line", "mark apart", "mark"]
    assert kinds[2] == ["median", "born", "era", "line", "line", "mark apart", "mark"]
    assert kinds[3] == ["median", "line"]


def test_it_says_what_its_signs_mean_and_loads_nothing() -> None:
    text = nights.render(trend_reports.machine())
    assert "default-src 'none'" in text
    for word in (
        "baseline",
        "another image, driver, profile or load time",
        "outside what was usual",
        "no reference for other nights",
    ):
        assert word in words(page(text))


@each("text", some(HOSTILE, 4))
def test_hostile_text_is_inert(text: str) -> None:
    shown = nights.render(trend_reports.hostile(text))
    for element in page(shown).iter():
        assert element.tag in ALLOWED
        assert set(element.attrib) <= ATTRIBUTES
        for drawn in ("d", "viewbox"):
            assert re.fullmatch(r"[MLZhv0-9. e-]*", element.get(drawn, ""))
    assert not any(word in shown for word in ("url(", "@import", "src=", "href=", "javascript:"))
    assert not any(ord(letter) < 32 and letter != "\n" for letter in shown)
    shown.encode("utf-8")


def test_another_language() -> None:
    shown = page(
        nights.render(
            trend_reports.machine(),
            translated.language({"Nights of a machine": "Nächte einer Maschine"}),
        )
    )
    assert shown.get("lang") == "xx"
    assert words(shown.find(".//h1")) == "Nächte einer Maschine"


def test_no_nights_at_all() -> None:
    assert "0 nights recorded" in nights.render(TrendReport("m", 0, (), ()))


# --- the shapes ---


def drawn(
    values: dict[int, float],
    count: int = trend_reports.NIGHTS,
    born: float | None = None,
    since: int = 9999,
) -> trends.TrendPlot:
    made = trend_reports.course("m", "gpu0", values, since=since)
    row = trend.row(
        made, trend_reports.BOOK, virtual=False, facts=trend_reports.FACTS, baseline=born
    )
    return trends.draw(row, {f"run-{number}": number for number in range(count)})


def test_the_scale_holds_every_value_and_the_baseline() -> None:
    found = drawn({0: 10.0, 1: 20.0}, born=30.0)
    assert (found.bottom, found.top) == ("8.8", "31.2")
    assert found.lines == ("M0.5 94.6L1.5 50",)
    assert found.born == "5.4"
    assert found.bands == ()
    assert drawn({0: 10.0}).lines == ("M0.5 50h.1",)
    assert drawn({0: 0.0}).lines == ("M0.5 50h.1",)


def test_a_night_without_a_value_keeps_its_place() -> None:
    assert drawn({0: 10.0, 9: 20.0}).lines == ("M0.5 94.6L9.5 5.4",)


def test_a_line_ends_with_its_era() -> None:
    found = drawn({0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0}, since=2)
    assert len(found.lines) == 2
    assert found.eras == (2.0,)


def test_many_nights_share_their_places() -> None:
    values = {n: 50.0 + (n % 10) for n in range(2400)}
    found = drawn(values, 2400)
    assert trends.width(2400) == trends.CELLS == 240
    assert found.lines[0].count("L") == 239
    assert found.lines[0].startswith("M0.5 ")
    (band,) = found.bands
    assert band.count("L") == 479
    assert trends.width(3) == 3
    assert trends.width(0) == 1


def counted(*values: float, outside: int = -1, held: bool = True) -> TrendReport:
    """A machine with one count by night."""
    points = tuple(
        TrendPoint(f"run-{n}", 20454.0 + n, value, None, n == outside, False, held, 1)
        for n, value in enumerate(values)
    )
    course = TrendSeries("gpu.identity", "gpu_sm_count", "gpu0", "count", "GPU-a", points)
    row = trend.row(course, trend_reports.BOOK, virtual=False, facts=trend_reports.FACTS)
    return TrendReport("0123abcd", 4, trend_reports.nights(4), (row,))


def test_a_count_that_never_moved_is_told_and_not_drawn() -> None:
    shown = page(nights.render(counted(132.0, 132.0, 132.0)))
    assert list(shown.iter("figure")) == []
    assert "Counts that were the same every night" in words(shown)
    assert "gpu_sm_count gpu0" in words(shown.find(".//table"))


@each(
    "found",
    [counted(132.0, 131.0), counted(1.0, 1.0, outside=1), counted(1.0, 1.0, held=False)],
)
def test_whatever_is_to_be_seen_of_a_count_is_drawn(found: TrendReport) -> None:
    shown = page(nights.render(found))
    assert len(list(shown.iter("figure"))) == 1
    assert "Counts that were the same every night" not in words(shown)
