"""Journals of an older rigproof, which have sentences and no codes.

An end of a check does not say which findings decided it: its sentences are looked for, whole, among
those of the findings of a first fold, and the other way round. A plan's gap is known by its
beginning, and the origin of a limit as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from acceptance.core.finding import Finding
from acceptance.core.plan import Due
from acceptance.core.record import CheckEnded, Entry
from acceptance.core.verdict import Verdict
from acceptance.wording import words

# How a plan's gap began where earlier runs could not be read.
_NOT_COMPARED = (
    "what changed since the machine was accepted cannot be told",
    "what changed from night to night cannot be told",
)


def is_comparison_gap(gap: str) -> bool:
    """Whether a plan's gap is that earlier runs could not be read."""
    return gap.startswith(_NOT_COMPARED)


def is_no_model(due: Due) -> bool:
    """Whether a measurement had no limit because the GPU's model was not known."""
    return due.origin in ("model sheets", "architectures")


def lacks_codes(entries: Sequence[Entry]) -> bool:
    """Whether a check ended, not passing, without the codes of what decided it."""
    return any(_is_older(entry) for entry in entries)


def with_codes(entries: Sequence[Entry], verdict: Verdict) -> tuple[Entry, ...]:
    """The entries with those codes, by the findings of their first fold."""
    found = {
        check.id: [one for one in check.findings if _is_judged(one)] for check in verdict.checks
    }
    return tuple(
        replace(entry, body=_coded(entry.body, found.get(entry.body.check, [])))
        if isinstance(entry.body, CheckEnded) and _is_older(entry)
        else entry
        for entry in entries
    )


def _is_older(entry: Entry) -> bool:
    body = entry.body
    return isinstance(body, CheckEnded) and body.outcome != "pass" and body.codes is None


def _is_judged(finding: Finding) -> bool:
    """Whether a finding is the fold's own, and no quoted end of a check."""
    return not {"text", "meaning"} & finding.values.keys()


def _coded(ended: CheckEnded, findings: Sequence[Finding]) -> CheckEnded:
    same = [one for one in findings if one.kind == ended.outcome]
    said = ((one.code, words.of(one)) for one in same)
    message = words.text(ended.message)
    codes = {code for code, text in said if text in message or message in text}
    return replace(ended, codes=tuple(sorted(codes)))
