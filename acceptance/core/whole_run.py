"""Findings about a run as a whole: missing sessions, unplanned checks, a missing end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.core.collection import REPEAT_SESSION, SESSIONS, SessionName
from acceptance.core.finding import Finding
from acceptance.core.message import Message, Value, known
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
    told = [Message("gap", {"text": text}) for text in plan.gaps]
    if not any(check.due for check in plan.checks):
        told.append(Message("nothing_planned"))
    for session in (*SESSIONS, REPEAT_SESSION):
        told += _session_troubles(plan, session, bodies, stopped)
    told += [
        Message("trouble", {"text": body.text})
        for body in bodies
        if isinstance(body, Note) and body.trouble
    ]
    if any(isinstance(body, Postponed) for body in bodies) and not was_abandoned(bodies):
        told.append(Message("postponed_and_run"))
    named = {name: None for body in bodies if (name := getattr(body, "check", None)) is not None}
    ids = {check.id for check in plan.checks}
    told += [Message("check_not_in_plan", {"name": name}) for name in named if name not in ids]
    ends = [body for body in bodies if isinstance(body, RunEnded)]
    if len(ends) != 1 or not ends[0].complete:
        why = tuple(end.detail for end in ends if not end.complete and end.detail)
        told.append(Message("run_did_not_end", known(why=why)))
    told += [
        Message("run_closed", {"text": body.detail})
        for body in bodies
        if isinstance(body, RunClosed)
    ]
    return [Finding("error", "run", one.code, one.values) for one in told]


def _session_troubles(
    plan: Plan, session: SessionName, bodies: Sequence[Body], stopped: bool
) -> Iterator[Message]:
    """What is wrong with one session.

    It is due once where the plan has checks for it, and otherwise not at all; a repeat may occur.
    """
    share = {check.id for check in plan.checks if check.session == session}
    begun = [
        body for body in bodies if isinstance(body, SessionStarted) and body.session == session
    ]
    done = [body for body in bodies if isinstance(body, SessionEnded) and body.session == session]
    if any(
        (body.digest, body.site_digest) != (plan.digest, plan.site_digest(session))
        or not share.issubset(body.collection)
        for body in begun
    ):
        yield Message("session_of_another_version", {"session": session})
    for body in done:
        if not body.complete:
            yield Message("session_incomplete", {"session": session, "text": body.detail})
    if session == REPEAT_SESSION:
        due = 1 if begun or done else 0
    else:
        due = 1 if share else 0
    said = stopped and not begun and not done  # once, for the whole run
    if (len(begun) != due or len(done) != due) and not said:
        times = {"session": session, "began": len(begun), "ended": len(done)}
        yield Message("session_not_once" if due else "session_not_due", times)


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
    values: dict[str, Value] = {
        "reasons": night.reasons or Message("no_reason"),
        "in_a_row": night.in_a_row,
    }
    if night.in_a_row >= night.most:
        values["limit"] = night.most - 1
        return Finding("fail", "run", "postponed_too_often", values, event="postponed")
    values["most"] = night.most
    if after_s is None:
        return Finding("skip", "run", "postponed", values, event="postponed")
    values["seconds"] = round(after_s)
    return Finding("skip", "run", "given_up", values, event="postponed")
