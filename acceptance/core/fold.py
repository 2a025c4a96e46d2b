"""The fold: plan and journal in, verdict out.

A pure function; every report is a view of its result. It trusts no summary: each value is compared
with the plan's limit again, whatever the session said of it. A planned measurement that the journal
does not contain is not a pass. Some findings are about a run as a whole: missing sessions,
unplanned checks, a missing end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptance.core import foreign_process, load_xid, repeat
from acceptance.core.event_finding import OwnedEvent, event_findings, owners_of, with_first
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.message import Message, Single, Text, Value, english, known
from acceptance.core.plan import REPEAT_SESSION, SESSIONS, Plan, PlannedCheck, SessionName
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    ForeignProcess,
    Measured,
    Note,
    Postponed,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
    records,
)
from acceptance.core.spans import CheckSpans, load_progress, run_seconds
from acceptance.core.verdict import _RANK, BaselineChanges, CheckResult, Verdict, judge, worst


def run_findings(plan: Plan, bodies: Sequence[Body], stopped: bool) -> list[Finding]:
    """An error for each problem of the run as a whole.

    `stopped` says that a user or a gate ended the run before its plan was done.
    """
    told = [Message(english("gap", "{text}"), {"text": text}) for text in plan.gaps]
    if not any(check.due for check in plan.checks):
        told.append(
            Message(
                english("nothing_planned", "the plan holds no measurement, so nothing can pass")
            )
        )
    for session in (*SESSIONS, REPEAT_SESSION):
        told += _session_troubles(plan, session, bodies, stopped)
    told += [
        Message(english("trouble", "{text}"), {"text": body.text})
        for body in bodies
        if isinstance(body, Note) and body.trouble
    ]
    if any(isinstance(body, Postponed) for body in bodies) and not was_abandoned(bodies):
        told.append(
            Message(
                english(
                    "postponed_and_run",
                    "it was put off because the machine was in use, and yet something was run",
                )
            )
        )
    named = {name: None for body in bodies if (name := getattr(body, "check", None)) is not None}
    ids = {check.id for check in plan.checks}
    told += [
        Message(
            english("check_not_in_plan", "{name} was run but is not in the plan"), {"name": name}
        )
        for name in named
        if name not in ids
    ]
    ends = [body for body in bodies if isinstance(body, RunEnded)]
    if len(ends) != 1 or not ends[0].complete:
        why = tuple(end.detail for end in ends if not end.complete and end.detail)
        told.append(
            Message(
                english("run_did_not_end", "the run did not come to its end[: {why}]"),
                known(why=why),
            )
        )
    told += [
        Message(english("run_closed", "{text}"), {"text": body.detail})
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
        yield Message(
            english(
                "session_of_another_version",
                "session {session} ran another version of rigproof than the one that made the plan",
            ),
            {"session": session},
        )
    for body in done:
        if not body.complete:
            yield Message(
                english("session_incomplete", "session {session} {text}"),
                {"session": session, "text": body.detail},
            )
    if session == REPEAT_SESSION:
        due = 1 if begun or done else 0
    else:
        due = 1 if share else 0
    said = stopped and not begun and not done  # once, for the whole run
    if (len(begun) != due or len(done) != due) and not said:
        times = {"session": session, "began": len(begun), "ended": len(done)}
        yield Message(
            english(
                "session_not_once",
                "session {session} began {began} and ended {ended} times, not once",
            )
            if due
            else english(
                "session_not_due",
                "session {session} began {began} and ended {ended} times, not never",
            ),
            times,
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
    values: dict[str, Value] = {
        "reasons": night.reasons or Message(english("no_reason", "without a reason")),
        "in_a_row": night.in_a_row,
    }
    if night.in_a_row >= night.most:
        values["limit"] = night.most - 1
        return Finding(
            "fail",
            "run",
            english(
                "postponed_too_often",
                "skipped {in_a_row} times in a row, because the machine was in use each time "
                "(limit: {limit}); now: {reasons}",
            ),
            values,
            event="postponed",
        )
    values["most"] = night.most
    if after_s is None:
        return Finding(
            "skip",
            "run",
            english(
                "postponed",
                "the machine is in use, so nothing was run ({in_a_row} in a row, {most} are a "
                "failure): {reasons}",
            ),
            values,
            event="postponed",
        )
    values["seconds"] = round(after_s)
    return Finding(
        "skip",
        "run",
        english(
            "given_up",
            "the machine is in use, so the night was given up after {seconds} s ({in_a_row} in a "
            "row, {most} are a failure): {reasons}",
        ),
        values,
        event="postponed",
    )


def fold(
    entries: Sequence[Entry],
    baseline: BaselineChanges | None = None,
    troubles: Sequence[Message] = (),
) -> Verdict:
    """Judge a run from its journal, in the order of the merged segments, without duplicates.

    `baseline` is what differs from the facts of the baseline in the plan, `troubles` say why the
    evidence is not whole. Raises ValueError when the journal has no beginning, or more than one,
    and where the plan holds such facts and nothing was compared with them.
    """
    starts = [start for _, start in records(entries, RunStarted)]
    if len(starts) != 1:
        raise ValueError(f"the journal holds {len(starts)} beginnings of a run, not one")
    start = starts[0]
    plan = start.plan
    if plan.baseline is not None and baseline is None:
        raise ValueError("the plan holds the facts of a baseline, and nothing compares them")
    changed = baseline or BaselineChanges()
    evidence = [Finding("error", "run", one.code, one.values) for one in troubles]
    bodies = [entry.body for entry in entries]
    night = postponement(bodies)
    if night is not None and not has_run(bodies):
        return _skipped(start, night, [postponement_finding(night), *evidence])
    spans = CheckSpans(entries)
    until_then = load_progress(entries, spans)
    events: dict[str, list[OwnedEvent]] = {}
    unowned: list[OwnedEvent] = []
    owned = [
        (entry, event, owning)
        for entry, event in records(entries, Event)
        if (owning := owners_of(entry, event, spans, plan)) is not None
    ]
    grades = load_xid.grades(plan, entries, {entry: owning for entry, _, owning in owned})
    for entry, event, owning in owned:
        at_s = load_xid.moment_s(entry, event)
        after_s = spans.seconds_into(owning[0], entry.boot, at_s) if owning else None
        beside = owning if len(owning) > 1 else ()
        one = OwnedEvent(event, beside, grades.get(entry), after_s)
        for name in owning:
            events.setdefault(name, []).append(one)
        if not owning:
            unowned.append(one)
    stopped = next(
        (end.detail for _, end in records(entries, RunEnded) if not end.complete),
        None,
    )
    first, second = repeat.split_repeat(entries)
    uses = foreign_process.uses(entries)
    # Sorted once: a machine of many GPUs measures thousands of values, and each check would look
    # through them all.
    told: dict[str | None, list[Body]] = {}
    for entry in first:
        told.setdefault(getattr(entry.body, "check", None), []).append(entry.body)
    checks = tuple(
        _check(
            check,
            plan,
            told.get(check.id, []),
            second,
            events.get(check.id, []),
            foreign_process.findings(check, uses, spans),
            _why(stopped, until_then.get(check.id)),
        )
        for check in plan.checks
    )
    findings = [
        *run_findings(plan, bodies, stopped is not None),
        *event_findings(unowned, "run"),
        *changed.findings,
        *evidence,
    ]
    verdict = _verdict(start, checks, findings, changed=changed.notes)
    if night is not None and was_abandoned(bodies) and verdict.verdict != "FAIL":
        given_up = postponement_finding(night, after_s=run_seconds(entries))
        return _skipped(start, night, [given_up, *evidence])
    return verdict


def _why(stopped: Text | None, until_then: Text | None) -> tuple[Single, ...]:
    """Why a check did not finish, as far as is known, and what its loads proved before."""
    return tuple(
        filter(
            None,
            [
                stopped,
                until_then
                and Message(english("proved", "proved until then: {text}"), {"text": until_then}),
            ],
        )
    )


def _skipped(start: RunStarted, night: Postponed, findings: Sequence[Finding]) -> Verdict:
    """The verdict of a run that proves nothing: all checks skipped, for one common reason."""
    checks = tuple(
        CheckResult(check.id, check.title, check.session, "skip", 0.0, (), (), ())
        for check in start.plan.checks
    )
    return _verdict(start, checks, findings, night)


def _verdict(
    start: RunStarted,
    checks: tuple[CheckResult, ...],
    findings: Sequence[Finding],
    postponed: Postponed | None = None,
    changed: tuple[Message, ...] = (),
) -> Verdict:
    return Verdict(
        scope="partial" if start.plan.shortened else start.plan.scope,
        run_id=start.run_id,
        profile=start.plan.profile,
        inventory_declared=start.plan.inventory_declared,
        checks=checks,
        findings=tuple(findings),
        waivers=start.plan.waivers,
        provenance=start.provenance,
        postponed=postponed,
        changed=changed,
        shortened=start.plan.shortened,
    )


def _check(
    check: PlannedCheck,
    plan: Plan,
    own: Sequence[Body],
    second: Sequence[Entry],
    events: Sequence[OwnedEvent],
    shared: Sequence[Finding],
    why: tuple[Single, ...],
) -> CheckResult:
    began = [body for body in own if isinstance(body, CheckStarted)]
    ended = [body for body in own if isinstance(body, CheckEnded)]
    measured = [body for body in own if isinstance(body, Measured)]
    skips = [body for body in own if isinstance(body, Skipped)]
    again = [body for _, body in records(second, Measured) if body.check == check.id]
    judged = judge(check, measured, skips, plan.waivers, again)
    findings = [finding for one in judged for finding in one.findings]
    due = {(one.measurement, one.component) for one in check.due}
    for extra in (*measured, *again):
        if (extra.measurement, extra.component) not in due:
            stray = {"name": extra.measurement, "part": str(extra.component)}
            findings.append(
                Finding(
                    "error",
                    check.id,
                    english(
                        "not_in_plan", "measured {name} on {part}, which the plan does not hold"
                    ),
                    stray,
                )
            )
    if not ended or any(body.outcome == "error" for body in ended):
        # One finding in place of one for each measurement that is missing for the same reason.
        findings = [finding for finding in findings if not finding.unmeasured]
    if not ended:
        code = (
            english("did_not_finish", "did not finish[: {why}]")
            if began
            else english("never_ran", "never ran[: {why}]")
        )
        by_check = any(isinstance(one, Message) and one.code == "gate_not_passed" for one in why)
        kind: FindingKind = "skip" if by_check and not began else "error"
        findings.append(Finding(kind, check.id, code, known(why=why)))
    elif len(began) != 1 or len(ended) != 1:
        times = {"began": len(began), "ended": len(ended)}
        findings.append(
            Finding(
                "error",
                check.id,
                english(
                    "ran_again",
                    "began {began} and ended {ended} times, not once: a check that has run is "
                    "never run again",
                ),
                times,
            )
        )
    for body in ended:
        waived = body.outcome == "skip" and any(one.skipped for one in judged)
        if body.outcome != "pass" and not waived and not repeat.is_known(body, findings):
            findings.append(repeat.end_of(body))
    findings += repeat.repeat_findings(check.id, second, findings)
    unseen = event_findings(events, check.id, findings)
    findings = [*with_first(findings, events), *unseen, *shared]
    outcome = worst([finding.kind for finding in findings if finding.kind in _RANK])
    if outcome == "pass" and judged and all(one.skipped for one in judged):
        outcome = "skip"  # waived, so the run may pass; the check itself did not
    seconds = sum(body.seconds for body in ended)
    return CheckResult(
        check.id,
        check.title,
        check.session,
        outcome,
        seconds,
        judged,
        tuple(findings),
        tuple(owned.event for owned in events),
    )
