"""A machine's nights as a page: what changed most, then a plot for each measurement of each component. Offline, without scripts."""

from __future__ import annotations

from itertools import groupby

from acceptance.judge.chronicle import Chronicle
from acceptance.judge.language import ENGLISH, Language
from acceptance.reports import chronicle_words as words
from acceptance.reports.page import courses
from acceptance.reports.page.render import environment


def render(found: Chronicle, language: Language = ENGLISH) -> str:
    """The page's text."""
    places = {night.run_id: place for place, night in enumerate(found.shown)}
    drawn = [(row, courses.draw(row, places)) for row in found.rows]
    return (
        environment()
        .get_template("nights.html.j2")
        .render(
            _=language,
            language=language,
            told=words,
            opening=words.opening(found, language),
            found=found,
            changed=found.changed(),
            groups=[(name, list(rows)) for name, rows in groupby(drawn, key=lambda one: one[0].course.check)],
            width=courses.width(len(found.shown)),
            cells=lambda row: words.cells(row, plain=False),
        )
    )
