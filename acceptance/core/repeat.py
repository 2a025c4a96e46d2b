"""Repeats: which checks need one, which journal entries belong to one, and its errors."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from acceptance.core.finding import DRIFT, Finding, FindingKind
from acceptance.core.message import Message, Text, english
from acceptance.core.plan import REPEAT_SESSION, segment_of
from acceptance.core.record import CheckEnded, CheckStarted, Entry
from acceptance.core.verdict import Judgement

SEGMENT = segment_of(REPEAT_SESSION)


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


def split_repeat(entries: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The entries of the run itself, and those of its repeats."""
    first: list[Entry] = []
    second: list[Entry] = []
    for entry in entries:
        (second if entry.segment == SEGMENT else first).append(entry)
    return first, second


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
        times = {"began": len(began), "ended": len(ended)}
        yield Finding(
            "error",
            check,
            english(
                "repeat_ran_again", "the repeat began {began} and ended {ended} times, not once"
            ),
            times,
        )
    elif began and not ended:
        yield Finding("error", check, english("repeat_did_not_finish", "the repeat did not finish"))
    for body in ended:
        if body.outcome in ("fail", "error") and not is_known(body, known):
            told = body.message or Message(
                english("ended_as", "ended as {outcome}"), {"outcome": body.outcome}
            )
            yield Finding(
                body.outcome,
                check,
                english("repeat_ended", "at the repeat: {text}"),
                {"text": told},
            )


def is_known(ended: CheckEnded, known: Sequence[Finding]) -> bool:
    """Whether the findings hold already what made a check end as it did.

    They do where the session ended it for a finding of this code, or where one of them quotes its
    words.
    """
    said = (finding for finding in known if finding.kind == ended.outcome)
    return any(
        one.code in (ended.codes or ())
        or ended.message in (one.values.get("reason"), one.values.get("text"))
        for one in said
    )


def end_of(ended: CheckEnded) -> Finding:
    """What the session itself said at the end of a check that did not pass."""
    if not ended.message:
        said = {"outcome": ended.outcome}
        return Finding(
            _ending(ended),
            ended.check,
            english("ended_without_reason", "ended as {outcome} without saying why"),
            said,
        )
    told = ended.message if isinstance(ended.message, tuple) else (ended.message,)
    return Finding(
        _ending(ended),
        ended.check,
        english("ended", "{text}"),
        {"text": functools.reduce(_below, told)},
    )


def _below(first: Text, line: Text) -> Text:
    return Message(english("line_below", "{line}\n{next}"), {"line": first, "next": line})


def _ending(ended: CheckEnded) -> FindingKind:
    assert ended.outcome != "pass"
    return ended.outcome
