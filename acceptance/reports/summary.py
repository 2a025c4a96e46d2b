"""The words that all reports share: the closing line, and what a check's lines say."""

from __future__ import annotations

from acceptance.judge.judgement import Finding, Judged
from acceptance.judge.measurement import quantity
from acceptance.judge.record import Outcome
from acceptance.judge.verdict import Verdict
from acceptance.reports.text import one_line


def closing_line(verdict: Verdict) -> str:
    """One line: the verdict, what it does not cover, and the counts."""
    about = []
    if verdict.scope == "partial":
        about.append("partial: no acceptance of the machine")
    if not verdict.inventory_declared:
        about.append("inventory not declared")
    errors = verdict.count("error")
    words: dict[Outcome, str] = {
        "pass": "passed",
        "fail": "failed",
        "error": "error" if errors == 1 else "errors",
        "skip": "skipped",
    }
    shown = [outcome for outcome in words if verdict.count(outcome) or outcome == "pass"]
    counts = ", ".join(f"{verdict.count(outcome)} {words[outcome]}" for outcome in shown)
    waived = len(verdict.of_kind("waived"))
    counts += f", {waived} waived" if waived else ""
    told = f" ({'; '.join(about)})" if about else ""
    return f"{verdict.verdict}{told}: {counts}"


def line(finding: Finding) -> str:
    """A finding as one line."""
    action = f" -> {finding.action}" if finding.action else ""
    return one_line(f"{finding.text}{action}")


def told(finding: Finding, verdict: Verdict) -> tuple[str, ...]:
    """A finding as one line, and after it, each a line of its own, what was looked at where that takes several.

    A note of several lines stands in parentheses in the middle of the text; what was measured and its limit would be lost in it.
    """
    if "\n" in finding.text:
        key = (finding.check, finding.measurement, finding.component)
        for check in verdict.checks:
            for judged in check.judged:
                if (check.id, judged.due.measurement, judged.due.component) == key and "\n" in (judged.note or ""):
                    short, note = without_note(finding.text, judged.note or "")
                    action = f" -> {finding.action}" if finding.action else ""
                    return (one_line(f"{short}{action}"), *(one_line(part) for part in note))
    return (line(finding),)


def without_note(text: str, note: str) -> tuple[str, list[str]]:
    """A finding's text without the note in it, and the note's lines; none when the text does not hold it."""
    short = text.replace(f" ({note})", "", 1)
    return short, note.split("\n") if short != text else []


def limit_text(judged: Judged) -> str:
    """What a value was held against."""
    due = judged.due
    return f"{due.limit}" if due.limit else "not judged"


def value_text(judged: Judged) -> str:
    """A value with its unit, or that there is none."""
    return quantity(judged.value, judged.due.unit) if judged.value is not None else "not measured"


def basis_text(judged: Judged) -> str:
    """Where the limit comes from, or why there is none."""
    due = judged.due
    return one_line(f"{due.limit.basis} ({due.origin})" if due.limit else due.unlimited or "no limit")
