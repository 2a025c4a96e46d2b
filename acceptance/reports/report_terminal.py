"""A report on the terminal; its closing line comes last."""

from __future__ import annotations

from acceptance.core.language import ENGLISH, Language
from acceptance.reports import grid
from acceptance.reports.lines import HANG, LineWriter
from acceptance.reports.report import Answer, Items, Line, Part, Picture, Plots, Report, Table

MOST = 20  # lines of a list


def show(report: Report, screen: LineWriter, language: Language = ENGLISH) -> None:
    """Print a report."""
    for place, section in enumerate(report.sections):
        if place:
            screen.say("")
        if section.title:
            screen.say(section.title, f"bold {grid.STYLES[section.tone]}")
        for part in section.parts:
            _show(part, screen, language)
    if report.closing is not None:
        screen.say(report.closing.text, f"bold {grid.STYLES[report.closing.tone]}")


def _show(part: Part, screen: LineWriter, language: Language) -> None:
    match part:
        case Line(text, _, True):
            screen.path(text)
        case Line(text, tone):
            screen.say(text, grid.STYLES[tone])
        case Table():
            grid.show(part, screen)
        case Answer(title, text, details):
            screen.say(language("{label}: {text}", label=title, text=text))
            screen.say_all(details, indent=HANG)
        case Plots():
            grid.show(part.table, screen)
            screen.say_all(part.notes)
        case Items(lines) | Picture(instead=lines):
            screen.say_all(lines[:MOST], indent=2)
            if (rest := len(lines) - MOST) > 0:
                screen.say(language.ngettext("and {n} more", "and {n} more", rest), indent=2)
