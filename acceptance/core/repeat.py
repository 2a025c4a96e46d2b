"""Repeats: which checks need one, which journal entries belong to it, and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from acceptance.core.collection import REPEAT_SESSION
from acceptance.core.finding import DRIFT, Finding
from acceptance.core.judgement import Judgement
from acceptance.core.record import CheckEnded, CheckStarted, Entry

SEGMENT = f"journal-{REPEAT_SESSION}.jsonl"


def split_repeat(entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The entries of the run itself, and those of its repeats."""
    first: list[Entry] = []
    second: list[Entry] = []
    for entry in entries:
        (second if entry.segment == SEGMENT else first).append(entry)
    return first, second


def should_repeat(judged: Sequence[Judgement], findings: Sequence[Finding]) -> bool:
    """Whether a check needs a repeat: a value outside its past, and nothing else wrong.

    A check that failed by a limit, or did not finish, is never run again.
    """
    outside = any(one.drift is not None and one.drift.look_again for one in judged)
    own = f"{DRIFT}."
    sound = all(
        finding.kind in ("warn", "waived") or str(finding.event).startswith(own)
        for finding in findings
    )
    return outside and sound


def repeat_findings(
    check: str, second: Sequence[Entry], known: Sequence[Finding]
) -> Iterator[Finding]:
    """What went wrong in the repeat of one check, apart from its values.

    `known` are the findings from those values.
    """
    own = [entry.body for entry in second if getattr(entry.body, "check", None) == check]
    began = [body for body in own if isinstance(body, CheckStarted)]
    ended = [body for body in own if isinstance(body, CheckEnded)]
    if len(began) > 1 or len(ended) > 1 or (ended and not began):
        text = f"the second look began {len(began)} and ended {len(ended)} times, not once"
        yield Finding("error", check, text)
    elif began and not ended:
        yield Finding("error", check, "the second look did not finish")
    for body in ended:
        is_known = any(one.kind == body.outcome and one.text in body.message for one in known)
        if body.outcome in ("fail", "error") and not is_known:
            yield Finding(
                body.outcome,
                check,
                f"at the second look: {body.message or f'ended as {body.outcome}'}",
            )
