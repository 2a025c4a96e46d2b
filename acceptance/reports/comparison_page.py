"""A comparison as one page, offline and without scripts, in the style of report.html."""

from __future__ import annotations

import functools

import jinja2

from acceptance.core.language import ENGLISH, Language
from acceptance.history.comparison import BAD, REPORTED_KINDS, Comparison
from acceptance.reports import comparison_words as words
from acceptance.reports import templating


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templating.environment("acceptance.reports")
    environment.globals.update(words=words)
    return environment


def render(comparison: Comparison, language: Language = ENGLISH) -> str:
    """The page as HTML: what is worse first, then every measurement."""
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            _=language,
            language=language,
            comparison=comparison,
            letters=[words.letter(place) for place in range(len(comparison.runs))],
            told=comparison.of_kind(*REPORTED_KINDS),
            others=[row for row in comparison.rows if row.kind not in REPORTED_KINDS],
            bad=BAD,
        )
    )
