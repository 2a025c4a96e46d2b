"""The years that a disk lasts at the pace of its nights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trend_reports
from cases import each
from known import known
from test_nights_report import lines

from acceptance.core.language import ENGLISH
from acceptance.core.parts import Part
from acceptance.history import trend, wear
from acceptance.history.trend import TrendPoint, TrendReport, TrendRow, TrendSeries
from acceptance.reports import languages, trend_report


def points(*values: tuple[float, float]) -> list[TrendPoint]:
    """Nights by day and value."""
    return [
        TrendPoint(f"run-{n}", day, value, None, False, False, True, 1)
        for n, (day, value) in enumerate(values)
    ]


@each(
    "of, grown, days, years, least",
    [
        # a tenth of its life in a year: nine of ten tenths are left
        ([(0.0, 0.0), (365.25, 0.1)], 0.1, 365.25, 9.0, 0.9 / 0.11),
        ([(0.0, 0.0), (100.0, 0.07), (365.25, 0.1)], 0.1, 365.25, 9.0, 0.9 / 0.11),
        # nothing counted: it is slower than one per cent in that time
        ([(0.0, 0.5), (365.25, 0.5)], 0.0, 365.25, None, 50.0),
        # worn out, and beyond
        ([(0.0, 0.98), (73.05, 1.0)], 0.02, 73.05, 0.0, 0.0),
        ([(0.0, 1.0), (73.05, 1.2)], 0.2, 73.05, 0.0, 0.0),
        # it began again
        ([(0.0, 0.4), (10.0, 0.0), (375.25, 0.2)], 0.2, 365.25, 4.0, 0.8 / 0.21),
        (
            [(0.0, 0.0), (28.0, 0.01)],
            0.01,
            28.0,
            0.99 * 28 / 0.01 / 365.25,
            0.99 * 28 / 0.02 / 365.25,
        ),
    ],
)
def test_the_pace_of_a_disk(
    of: list[tuple[float, float]], grown: float, days: float, years: float | None, least: float
) -> None:
    found = known(wear.wear(points(*of)))
    assert (found.used, found.grown, found.days) == (of[-1][1], grown, days)
    assert found.years == (None if years is None else pytest.approx(years))
    assert found.least_years == pytest.approx(least)
    assert found.per_year == pytest.approx(grown / days * 365.25)


def row(measurement: str, serial: str | None, *of: tuple[float, float]) -> TrendRow:
    course = TrendSeries(
        "storage.smart_health",
        measurement,
        Part("disk", "nvme0n1"),
        "ratio",
        serial,
        tuple(points(*of)),
    )
    return trend.row(course, trend_reports.BOOK, virtual=False, facts=trend_reports.FACTS)


YEAR = ((0.0, 0.02), (365.25, 0.06))
SAME = ((0.0, 0.02), (730.5, 0.02))
REPORT = TrendReport(
    "m",
    2,
    (),
    (
        row("disk_wear", "S1", *YEAR),
        row("disk_wear", None, *SAME),
        row("disk_wear", "S3", (0.0, 0.9), (365.25, 1.01)),
        row("disk_wear", "S4", (0.0, 0.0), (1.0, 0.01)),
        row("storage_write", "S1", *YEAR),
    ),
)


FEW = ([], [(0.0, 0.1)], [(0.0, 0.0), (27.9, 0.5)], [(0.0, 0.5), (100.0, 0.1), (120.0, 0.2)])


def test_it_is_told_in_a_line_for_each_disk_in_a_section_of_its_own() -> None:
    told = trend_report.wear_lines(REPORT, ENGLISH)
    assert told == [
        "disk:nvme0n1 (S1): 6 % of its rated life used, 4 % a year at the pace of these 365 days: "
        "about 23.5 years left, at least 18.8",
        "disk:nvme0n1: 2 % of its rated life used, nothing counted in these 730 days: more than "
        "196 years left at this pace",
        "disk:nvme0n1 (S3): 101 % of its rated life used: the maker promises nothing beyond 100 %",
    ]
    chinese = trend_report.wear_lines(REPORT, languages.language("zh-CN"))
    assert "额定寿命已用 6 %" in chinese[0]
    shown = lines(replace(REPORT, shown=trend_reports.nights(2)))
    at = shown.index("Wear of disks")
    assert shown[at + 1 : at + 4] == told
    assert "Wear of disks" not in lines(trend_reports.machine()), "without a pace"
    assert [wear.wear(points(*of)) for of in FEW] == [None] * 4, "few days tell nothing"
