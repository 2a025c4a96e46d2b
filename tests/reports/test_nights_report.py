"""The report of a machine's nights, as its reader sees it."""

from __future__ import annotations

import dataclasses
import re

import drawn
import pages
import trend_reports
from cases import each
from hostile import TEXTS
from msgspec import structs
from thoroughness import some

from acceptance.history import trend
from acceptance.history.trend import TrendPoint, TrendReport, TrendSeries
from acceptance.reports.page import trends
from acceptance.reports.trend_report import report


def lines(found: TrendReport, *, one: bool = False) -> list[str]:
    return drawn.lines(report(found, one=one, drawn=False))


def test_a_night_of_a_partial_run_says_so() -> None:
    found = trend_reports.machine()
    *others, last = found.shown
    partial = structs.replace(last, apart="partial")
    shown = lines(dataclasses.replace(found, shown=(*others, partial)))
    assert shown[2].startswith("20 PASS, 1 PASS (partial), 1 FAIL, ")
    assert shown[3] == "the last run: run-23: PASS (partial)"


def test_which_machine_what_changed_most_then_everything() -> None:
    shown = lines(trend_reports.machine(("fedc9876",)))
    assert shown[:6] == [
        "machine 0123abcd: 40 nights recorded",
        "showing the last 24 nights, from 2026-01-01 to 2026-01-24",
        "21 PASS, 1 FAIL, 1 UNJUDGED, 1 skipped, the machine was in use",
        "the last run: run-23: PASS",
        "accepted as the baseline: run-0",
        "other machines with a history here: fedc9876 (--machine-id shows one)",
    ]
    most, all_ = (
        next(place for place, line in enumerate(shown) if line.startswith(heading))
        for heading in ("What changed most", "All measurements")
    )
    head, *rows = shown[most + 1 : all_ - 1]
    assert head == "measurement component unit nights median MAD last trend outside change values"
    assert [row[: row.rindex(" ")] for row in rows] == [
        "copy_h2d gpu0 GB/s 23 50 0.1 46.2 \u2193 1 -8.0 %"
    ]
    rows = shown[all_ + 2 :]
    assert [row.split()[:2] for row in rows] == [
        [name, gpu] for name in ("copy_h2d", "copy_d2h") for gpu in ("gpu0", "gpu1")
    ]
    assert rows[1].startswith("copy_h2d gpu1 GB/s 23 50.1 0.1 50.2 \u2192 1 ")
    assert re.fullmatch("copy_d2h gpu1 GB/s 1 5 0 5 - .*\u2584", rows[3])
    named = lines(trend_reports.machine(), one=True)
    assert "Nights of the named measurements" in named
    assert not any("changed" in line for line in named)
    era = "run-12 on: driver: 580.1 -> 590.2; time of burn: 20 s -> 30 s"
    assert named[-1] == f"copy_d2h gpu0: another era from {era}"
    signs = [
        row.cells[7]
        for plain in (True, False)
        for part in report(trend_reports.machine(), plain=plain, drawn=False).sections[1].parts
        for row in getattr(part, "rows", ())
    ]
    assert signs == ["v", "\u2193"], "a terminal that draws nothing"


def test_nothing_changed_and_nothing_there() -> None:
    found = trend_reports.machine()
    quiet, few, none = (
        TrendReport("m", len(rows), found.shown[: len(rows)], rows)
        for rows in (found.rows[1:2], found.rows[3:], ())
    )
    assert lines(quiet)[:3] == [
        "machine m: 1 night recorded",
        "from 2026-01-01 to 2026-01-01",
        "1 PASS",
    ]
    nothing, too_few = (
        "Nothing changed by more than noise in the last week.",
        "There are too few nights",
    )
    assert nothing in lines(quiet)
    assert [line[: len(too_few)] for line in lines(few)].count(too_few) == 1
    assert nothing not in lines(few)
    assert lines(none) == ["machine m: 0 nights recorded"]
    assert "0 nights recorded" in pages.words(drawn.page(report(none)))
    risen = {n: 0.0 if n < 12 else 3.0 for n in range(24)}
    made = trend_reports.course("faults", "gpu0", risen)
    row = trend.row(made, trend_reports.BOOK, virtual=False, facts=trend_reports.FACTS)
    told = lines(TrendReport("m", 24, trend_reports.nights(), (row,)))
    assert any(" +3 " in line for line in told), "a change from nothing has its unit"


def test_parts_that_were_replaced_are_told_by_their_serial_numbers() -> None:
    found = trend_reports.machine()
    first = found.rows[0]
    other = trend_reports.course("copy_h2d", "gpu0", {22: 50.0}, serial="GPU-c")
    rows = (first, type(first)(other, first.summary))
    shown = lines(TrendReport("m", 2, found.shown, rows), one=True)
    assert sum("gpu0 (GPU-a)" in line for line in shown) == 1
    assert sum("gpu0 (GPU-c)" in line for line in shown) == 1


def test_a_page_has_a_plot_for_each() -> None:
    shown = drawn.page(report(trend_reports.machine()))
    assert "machine 0123abcd: 40 nights recorded" in pages.words(shown.find(".//main"))
    (table,) = shown.iter("table")
    assert [pages.words(row) for row in table.iter("tr")][1] == (
        "copy_h2d gpu0 GB/s 23 50 0.1 46.2 \u2193 1 -8.0 %"
    )
    figures = list(shown.iter("figure"))
    assert [
        (
            pages.words(figure.find("figcaption")),
            [path.get("class") for path in figure.iter("path")],
        )
        for figure in figures
    ] == [
        ("copy_h2d gpu0 GPU-a", ["median", "born", "line", "mark apart", "mark"]),
        ("copy_h2d gpu1 GPU-b", ["median", "line", "mark apart", "mark"]),
        ("copy_d2h gpu0", ["median", "born", "era", "line", "line", "mark apart", "mark"]),
        ("copy_d2h gpu1", ["median", "line"]),
    ]
    assert "median 50 GB/s, MAD 0.1; last 46.2; 23 nights, 1 outside" in pages.words(figures[0])
    assert "run-12: driver: 580.1 -> 590.2; time of burn: 20 s -> 30 s" in pages.words(figures[2])
    for meaning in (
        *("baseline", "another image, driver, profile or load time", "outside what was usual"),
        "no reference for other nights",
    ):
        assert meaning in pages.words(shown), "a sign's meaning"


@each("text", some(TEXTS, 2))
@each("one", [True, False])
def test_hostile_text_is_harmless(text: str, one: bool) -> None:
    drawn.assert_harmless(report(trend_reports.hostile(text), one=one))


# --- the shapes ---


def shape(
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


@each(
    "values, born, since, about",
    [
        (
            {0: 10.0, 1: 20.0},
            30.0,
            9999,
            {"bottom": "8.8", "top": "31.2", "born": "5.4", "bands": ()},
        ),
        ({0: 10.0, 1: 20.0}, 30.0, 9999, {"lines": ("M0.5 94.6L1.5 50",)}),
        ({0: 10.0}, None, 9999, {"lines": ("M0.5 50h.1",)}),
        ({0: 0.0}, None, 9999, {"lines": ("M0.5 50h.1",)}),
        ({0: 10.0, 9: 20.0}, None, 9999, {"lines": ("M0.5 94.6L9.5 5.4",)}),
        ({0: 1.0, 1: 1.0, 2: 2.0, 3: 2.0}, None, 2, {"eras": (2.0,)}),
    ],
    told=[
        *("every value and the baseline", "its line", "one night", "of nothing"),
        *("a night without a value keeps its place", "another era"),
    ],
)
def test_the_shapes(
    values: dict[int, float], born: float | None, since: int, about: dict[str, object]
) -> None:
    found = shape(values, born=born, since=since)
    assert {name: getattr(found, name) for name in about} == about
    assert len(found.lines) == (2 if since < 9999 else 1), "a line ends with its era"


def test_many_nights_share_their_places() -> None:
    values = {n: 50.0 + (n % 10) for n in range(2400)}
    found = shape(values, 2400)
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


SAME = "Counts that were the same every night"


@each(
    "found, plots",
    [
        (counted(132.0, 132.0, 132.0), 0),
        (counted(132.0, 131.0), 1),
        (counted(1.0, 1.0, outside=1), 1),
        (counted(1.0, 1.0, held=False), 1),
    ],
)
def test_whatever_is_to_be_seen_of_a_count_is_drawn(found: TrendReport, plots: int) -> None:
    shown = drawn.page(report(found))
    assert len(list(shown.iter("figure"))) == plots
    assert (SAME in pages.words(shown)) is (plots == 0)
    assert plots or "gpu_sm_count gpu0" in pages.words(shown.find(".//table"))
