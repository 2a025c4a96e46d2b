"""A fleet as one page, offline and without scripts: what is not PASS first.

Lists are cut, so that a page of 10,000 machines stays readable and small; CSV and JUnit have all.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from datetime import timedelta

import jinja2

from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.fleet import report as fleet_report
from acceptance.fleet.night import Row
from acceptance.fleet.report import BINS, Distribution, FleetReport, Matrix
from acceptance.fleet.views import terminal
from acceptance.reports import templating
from acceptance.wording import words

MOST = 200  # machines of a list
OPEN = 20  # of these, those that are open at once
ROWS = 60  # machines of the matrix
CHECKS = 30  # columns of the matrix
NAMED = 20  # machines named in a sentence, or in a cell
OLD = 20  # of the oldest verdicts
HEIGHT = 20  # of a distribution, in its own units
_LEAST = 2  # height of a bin that holds one value of ten thousand
AGES = (12, 24, 30, 48, 168)  # hours


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templating.environment("acceptance.fleet.views", "acceptance.reports.page")
    environment.globals.update(
        MOST=MOST,
        OPEN=OPEN,
        NAMED=NAMED,
        ROWS=ROWS,
        BINS=BINS,
        HEIGHT=HEIGHT,
        number=number,
        bars=bars,
        share=share,
    )
    return environment


def render(report: FleetReport, language: Language = ENGLISH) -> str:
    """The page as HTML."""
    found = fleet_report.matrix(report)
    spread, steady = fleet_report.distributions(report)
    return (
        _environment()
        .get_template("fleet.html.j2")
        .render(
            _=language,
            ngettext=language.ngettext,
            language=language,
            report=report,
            title=terminal.title(report, language),
            closing=terminal.closing_of(report, language),
            groups=list(terminal.groups(report, language)),
            reason=lambda row: words.text(report.reasons.get(row.machine, ""), language),
            troubles=[words.text(one, language) for one in report.other_troubles],
            matrix=found,
            checks=found.checks[:CHECKS],
            rows=[row for row in found.rows if any(cells(row, found))],
            cells=lambda row: cells(row, found),
            outcomes=lambda check: terminal.outcomes(found.outcomes[check], language),
            more_checks=terminal.checks(report, language)[CHECKS:],
            beside=terminal.beside(report, language),
            distributions=spread,
            steady=steady,
            oldest=fleet_report.oldest(report)[:OLD],
            ages=list(ages(report, language)),
            age=lambda since: terminal.age(since, language),
            changes=fleet_report.changes(report),
            changed=lambda one: list(terminal.changed(one, language)),
            not_due=terminal.not_due(report, language, NAMED),
            unsigned=terminal.unsigned(report, language, NAMED),
            passes=terminal.passes(report.due, language, NAMED),
            accepted=terminal.accepted(report.due, language),
            passed=[row.machine for row in report.due if row.verdict == "PASS"],
        )
    )


def cells(row: Row, found: Matrix) -> list[str]:
    """The outcome of each column's check on a machine; empty where it is no reason against PASS."""
    outcomes = dict(row.not_passed)
    return [outcomes.get(check, "") for check in found.checks[:CHECKS]]


def bars(one: Distribution, *, flagged: bool) -> str:
    """The bins of a distribution as a path: those that hold outliers, or the others."""
    most = max(one.bins)
    heights = {
        place: max(_LEAST, round(HEIGHT * count / most, 1))
        for place, count in enumerate(one.bins)
        if count and (place in one.flagged) == flagged
    }
    return "".join(f"M{place} {HEIGHT}v-{height}h.9v{height}Z" for place, height in heights.items())


def share(value: float) -> str:
    """A share as people read it."""
    return f"{100 * value:.1f} %"


def ages(report: FleetReport, language: Language) -> Iterator[tuple[str, int]]:
    """How many due machines have a newest run of each age."""
    known = [
        report.now - report.last[row.machine] for row in report.due if row.machine in report.last
    ]
    before = timedelta.min
    for hours in AGES:
        until = timedelta(hours=hours)
        count = sum(before < age <= until for age in known)
        before = until
        yield language("up to {hours} h", hours=hours), count
    yield language("older"), sum(age > before for age in known)
    yield language("none"), len(report.due) - len(known)
