"""Findings about a run as a whole: missing sessions, unplanned checks, a missing end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.core.collection import REPEAT_SESSION, SESSIONS, SessionName
from acceptance.core.finding import Finding
from acceptance.core.plan import Plan
from acceptance.core.record import (
    Body,
    ForeignProcess,
    Note,
    Postponed,
    RunClosed,
    RunEnded,
    SessionEnded,
    SessionStarted,
)


def findings(plan: Plan, bodies: Sequence[Body], stopped: bool) -> list[Finding]:
    """An error for each problem of the run as a whole.

    `stopped` says that a user or a gate ended the run before its plan was done.
    """
    texts = list(plan.gaps)
    if not any(check.due for check in plan.checks):
        texts.append("the plan holds no measurement, so nothing can pass")
    for session in (*SESSIONS, REPEAT_SESSION):
        texts += _session_troubles(plan, session, bodies, stopped)
    texts += [body.text for body in bodies if isinstance(body, Note) and body.trouble]
    if any(isinstance(body, Postponed) for body in bodies) and not was_abandoned(bodies):
        texts.append("it was put off because the machine was in use, and yet something was run")
    named = {name: None for body in bodies if (name := getattr(body, "check", None)) is not None}
    ids = {check.id for check in plan.checks}
    texts += [f"{name} was run but is not in the plan" for name in named if name not in ids]
    ends = [body for body in bodies if isinstance(body, RunEnded)]
    if len(ends) != 1 or not ends[0].complete:
        why = "; ".join(end.detail for end in ends if not end.complete)
        texts.append(f"the run did not come to its end{f': {why}' if why else ''}")
    texts += [body.detail for body in bodies if isinstance(body, RunClosed)]
    return [Finding("error", "run", text) for text in texts]


def _session_troubles(
    plan: Plan, session: SessionName, bodies: Sequence[Body], stopped: bool
) -> Iterator[str]:
    """What is wrong with one session.

    It is due once where the plan has checks for it, and otherwise not at all; a repeat may occur.
    """
    share = {check.id for check in plan.checks if check.session == session}
    begun = [
        body for body in bodies if isinstance(body, SessionStarted) and body.session == session
    ]
    done = [body for body in bodies if isinstance(body, SessionEnded) and body.session == session]
    if any(body.digest != plan.digest or not share.issubset(body.collection) for body in begun):
        yield f"session {session} ran another version of rigproof than the one that made the plan"
    yield from (f"session {session} {body.detail}" for body in done if not body.complete)
    if session == REPEAT_SESSION:
        due = 1 if begun or done else 0
    else:
        due = 1 if share else 0
    said = stopped and not begun and not done  # once, for the whole run
    if (len(begun) != due or len(done) != due) and not said:
        yield (
            f"session {session} began {len(begun)} and ended {len(done)} times, not "
            f"{'once' if due else 'never'}"
        )


def postponement(bodies: Sequence[Body]) -> Postponed | None:
    """Why the run was postponed or given up: the machine was in use.

    None where the journal has no such record, or several.
    """
    postponements = [body for body in bodies if isinstance(body, Postponed)]
    return postponements[0] if len(postponements) == 1 else None


def has_run(bodies: Sequence[Body]) -> bool:
    """Whether anything of the plan was run."""
    return any(
        isinstance(body, SessionStarted | SessionEnded) or hasattr(body, "check") for body in bodies
    )


def was_abandoned(bodies: Sequence[Body]) -> bool:
    """Whether a run was given up midway because of a foreign process.

    The journal then has a foreign process on a GPU, the postponement, and the end. A run that is
    postponed in any other way, and yet ran something, is judged as it is.
    """
    kinds = [
        type(body) for body in bodies if isinstance(body, ForeignProcess | Postponed | RunEnded)
    ]
    others = [kind for kind in kinds if kind is not ForeignProcess]
    ends = [body for body in bodies if isinstance(body, RunEnded)]
    seen = ForeignProcess in kinds
    return seen and has_run(bodies) and others == [Postponed, RunEnded] and not ends[0].complete


def postponement_finding(night: Postponed, after_s: float | None = None) -> Finding:
    """The finding of a postponed run, or of one given up after `after_s` seconds.

    It is a skip, and a failure after too many in a row.
    """
    reasons = "; ".join(night.reasons) or "without a reason"
    if night.in_a_row < night.most:
        count = f"{night.in_a_row} in a row, {night.most} are a failure"
        text = (
            "so nothing was run"
            if after_s is None
            else f"so the night was given up after {after_s:.0f} s"
        )
        return Finding(
            "skip", "run", f"the machine is in use, {text} ({count}): {reasons}", event="postponed"
        )
    text = (
        f"skipped {night.in_a_row} times in a row, because the machine was in use each time "
        f"(limit: {night.most - 1})"
    )
    return Finding("fail", "run", f"{text}; now: {reasons}", event="postponed")
