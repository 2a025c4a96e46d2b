"""Words that all reports share: the closing line, and the lines of checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acceptance.core.finding import Finding
from acceptance.core.judgement import Judgement
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import quantity
from acceptance.core.record import Outcome
from acceptance.core.verdict import Verdict
from acceptance.expect.limit_book import NO_ARCHITECTURE, NO_SHEET
from acceptance.reports import explanation
from acceptance.reports.locations import Locations
from acceptance.reports.text import one_line

MOST_NAMES = 3


def closing_line(verdict: Verdict, language: Language = ENGLISH) -> str:
    """The closing line: the verdict, what it does not cover, and the counts."""
    about = []
    if verdict.scope == "partial":
        about.append(language("partial: no acceptance of the machine"))
    if not verdict.inventory_declared:
        about.append(language("inventory not declared"))
    if verdict.verdict == "PASS" and (missing := not_judged(verdict, language)):
        about.append(missing)
    words: dict[Outcome, str] = {
        "pass": language("{number} passed", number=verdict.count("pass")),
        "fail": language("{number} failed", number=verdict.count("fail")),
        "error": language.ngettext("{n} error", "{n} errors", verdict.count("error")),
        "skip": language("{number} skipped", number=verdict.count("skip")),
    }
    counts = ", ".join(
        word for outcome, word in words.items() if verdict.count(outcome) or outcome == "pass"
    )
    if waived := len(verdict.of_kind("waived")):
        counts += ", " + language("{number} waived", number=waived)
    text = f" ({'; '.join(about)})" if about else ""
    if subjects := verdict.waived_whole():
        counts += "; " + language.ngettext(
            "{n} subject waived whole: {names}",
            "{n} subjects waived whole: {names}",
            len(subjects),
            names=", ".join(subjects),
        )
    return f"{verdict.verdict}{text}: {counts}"


def not_judged(verdict: Verdict, language: Language = ENGLISH) -> str | None:
    """How many measurements of which GPUs have no limit because the model is unknown.

    None if there are none.
    """
    found = [
        judged.due
        for check in verdict.checks
        for judged in check.judged
        if judged.due.limit is None
        and judged.value is not None
        and judged.due.origin in (NO_SHEET, NO_ARCHITECTURE)
    ]
    if not found:
        return None
    names = list(dict.fromkeys(name for due in found for name in due.component.split("->")))
    where = (
        ", ".join(names)
        if len(names) <= MOST_NAMES
        else language("{number} GPUs", number=len(names))
    )
    return language.ngettext(
        "{n} figure of {where} not judged: no sheet of the model tells a limit",
        "{n} figures of {where} not judged: no sheet of the model tells a limit",
        len(found),
        where=where,
    )


def finding_lines(findings: Iterable[Finding], places: Locations) -> Iterator[str]:
    """Findings as lines; those with the same details share them, below the last of them."""
    for group, below in explanation.group_findings(findings, places):
        yield from (one_line(finding.text) for finding in group)
        yield from below


def limit_text(judged: Judgement) -> str:
    """The limit of a measurement, or that there is none."""
    due = judged.due
    return f"{due.limit}" if due.limit else "not judged"


def value_text(judged: Judgement) -> str:
    """A value with its unit, or that there is none."""
    return quantity(judged.value, judged.due.unit) if judged.value is not None else "not measured"


def basis_text(judged: Judgement) -> str:
    """Where the limit comes from, or why there is none."""
    due = judged.due
    basis = f"{due.limit.basis} ({due.origin})" if due.limit else due.unlimited or "no limit"
    most = (
        f"; no more than {quantity(due.ceiling.high, due.unit)} is possible"
        if due.ceiling and due.ceiling.high
        else ""
    )
    return one_line(f"{basis}{most}")
