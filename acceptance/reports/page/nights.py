"""A machine's nights as a page: what changed most, then a plot for each measurement.

Offline, without scripts.
"""

from __future__ import annotations

import functools
from itertools import groupby

import jinja2

from acceptance.core.language import ENGLISH, Language
from acceptance.history.trend import TrendReport, TrendRow
from acceptance.reports import templating
from acceptance.reports import trend_words as words
from acceptance.reports.page import trends


@functools.cache
def _template() -> jinja2.Template:
    return templating.environment("acceptance.reports.page").get_template("nights.html.j2")


def _is_constant(row: TrendRow) -> bool:
    """Whether a row is a count that was the same on every night, which needs no plot.

    A value that was outside, or broke a limit, is drawn.
    """
    points = row.course.points
    same = (
        len(
            {value for point in points for value in (point.value, point.again) if value is not None}
        )
        == 1
    )
    return (
        row.course.unit == "count"
        and same
        and all(point.held and not point.outside for point in points)
    )


def render(report: TrendReport, language: Language = ENGLISH) -> str:
    """The page as HTML."""
    places = {night.run_id: place for place, night in enumerate(report.shown)}
    drawn = [(row, trends.draw(row, places)) for row in report.rows if not _is_constant(row)]
    return _template().render(
        _=language,
        ngettext=language.ngettext,
        language=language,
        words=words,
        opening=words.opening(report, language),
        found=report,
        changed=report.largest_changes(),
        worn=words.wear_lines(report, language),
        still=[row for row in report.rows if _is_constant(row)],
        groups=[
            (name, list(rows)) for name, rows in groupby(drawn, key=lambda one: one[0].course.check)
        ],
        width=trends.width(len(report.shown)),
        cells=lambda row: words.cells(row, plain=False),
    )
