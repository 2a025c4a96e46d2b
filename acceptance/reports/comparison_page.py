"""A comparison as one page, offline and without scripts, in the look of report.html."""

from __future__ import annotations

import functools

import jinja2
from markupsafe import Markup

from acceptance.judge.comparison import BAD, TOLD, Comparison
from acceptance.judge.language import ENGLISH, Language
from acceptance.reports import comparison_words as words
from acceptance.reports.text import one_line


def _harmless(value: object) -> object:
    """What the page may show of any value: untrusted text on one line, without control characters. Jinja escapes it after that."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("acceptance.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(words=words)
    return environment


def render(comparison: Comparison, language: Language = ENGLISH) -> str:
    """The page's text: what is worse first, then every measurement."""
    return (
        _environment()
        .get_template("comparison.html.j2")
        .render(
            _=language,
            language=language,
            comparison=comparison,
            letters=[words.letter(place) for place in range(len(comparison.runs))],
            told=comparison.of_kind(*TOLD),
            others=[row for row in comparison.rows if row.kind not in TOLD],
            bad=BAD,
        )
    )
