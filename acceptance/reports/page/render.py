"""report.html: one file, offline, without scripts.

The verdict and the reasons for it come first, then the machine and all measurements.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jinja2
from markupsafe import Markup

from acceptance.core.language import ENGLISH, Language
from acceptance.expect.sheet import Sheet
from acceptance.journal.run import Run
from acceptance.reports import explanation, summary, templating
from acceptance.reports import text as reports_text
from acceptance.reports.page import overview, run_log, topology
from acceptance.reports.page.sections import SECTIONS, page_run
from acceptance.wording import words
from acceptance.wording.words import quantity


@functools.cache  # reading the templates takes longer than filling them in
def _environment() -> jinja2.Environment:
    environment = templating.environment("acceptance.reports.page")
    environment.filters.update(duration=reports_text.duration)
    environment.globals.update(quantity=quantity, WIDTH=topology.WIDTH)
    return environment


def load() -> None:
    """Read all templates now, so that a later update of rigproof does not mix versions."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def template(name: str) -> jinja2.Template:
    """A template of the page's folder."""
    return _environment().get_template(name)


def _words(language: Language) -> dict[str, str]:
    """The words for outcomes, marks of values, and severities."""
    return {
        "pass": language("pass"),
        "fail": language("fail"),
        "error": language("error"),
        "skip": language("skip"),
        "warn": language("warn"),
        "waived": language("waived"),
        "fatal": language("fatal"),
        "warning": language("warning"),
        "info": language("info"),
    }


def render(run: Run, sheets: Sequence[Sheet] = (), language: Language = ENGLISH) -> str:
    """The page as HTML; `sheets` are the model sheets, for the peaks of bars."""
    page, closed = page_run(run, sheets, language), run_log.interruption(run.entries)
    first = explanation.of_run(run, language)
    shared = {"_": language, "ngettext": language.ngettext, "words": _words(language)}
    contents: list[tuple[str, str]] = []
    shown: list[Markup] = []
    for section in SECTIONS:
        content = section.content(page)
        if content is None:
            continue
        named = {**shared, "id": section.id, "title": content.title}
        shown.append(Markup(template(section.template).render(named, **content.values)))
        if section.listed:
            contents.append((section.id, content.title))
    return template("page.html.j2").render(
        shared,
        language=language,
        verdict=run.verdict,
        first=first,
        why=first and first.why(language),
        paperwork=summary.paperwork(run, first, language),
        counts=summary.counts(run.verdict, language),
        about=overview.about(run, page.seconds, language),
        broke_off=closed and words.text(closed.detail, language),
        contents=contents,
        sections=shown,
    )
