"""A report as one page, offline and without scripts, in the style of a run's page."""

from __future__ import annotations

import functools

import jinja2

from acceptance.core.language import ENGLISH, Language
from acceptance.reports import templating
from acceptance.reports.report import Report


@functools.cache
def _template(*packages: str) -> jinja2.Template:
    found = templating.environment("acceptance.reports.page", *packages)
    return found.get_template("report.html.j2")


def render(report: Report, language: Language = ENGLISH, *packages: str) -> str:
    """The page as HTML; `packages` have the templates of its pictures."""
    words = {"_": language, "ngettext": language.ngettext, "language": language}
    return _template(*packages).render(words, report=report)
