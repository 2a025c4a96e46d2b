"""The fold: plan and journal in, verdict out.

A pure function; every report is a view of its result. It trusts no summary: each value is compared
with the plan's limit again, whatever the session said of it. A planned measurement that the journal
does not contain is not a pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from acceptance.core import foreign_process, load_xid, repeat, whole_run
from acceptance.core.event_finding import OwnedEvent, event_findings, owners_of, with_first
from acceptance.core.finding import Finding, FindingKind
from acceptance.core.judgement import judge
from acceptance.core.message import Message, Single, Text, known
from acceptance.core.plan import Plan, PlannedCheck
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Postponed,
    RunEnded,
    RunStarted,
    Skipped,
    records,
)
from acceptance.core.spans import CheckSpans, load_progress, run_seconds
from acceptance.core.verdict import _RANK, BaselineChanges, CheckResult, Verdict, worst


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
    night = whole_run.postponement(bodies)
    if night is not None and not whole_run.has_run(bodies):
        return _skipped(start, night, [whole_run.postponement_finding(night), *evidence])
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
        *whole_run.findings(plan, bodies, stopped is not None),
        *event_findings(unowned, "run"),
        *changed.findings,
        *evidence,
    ]
    verdict = _verdict(start, checks, findings, changed=changed.notes)
    if night is not None and whole_run.was_abandoned(bodies) and verdict.verdict != "FAIL":
        given_up = whole_run.postponement_finding(night, after_s=run_seconds(entries))
        return _skipped(start, night, [given_up, *evidence])
    return verdict


def _why(stopped: Text | None, until_then: Text | None) -> tuple[Single, ...]:
    """Why a check did not finish, as far as is known, and what its loads proved before."""
    return tuple(filter(None, [stopped, until_then and Message("proved", {"text": until_then})]))


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
            findings.append(Finding("error", check.id, "not_in_plan", stray))
    if not ended or any(body.outcome == "error" for body in ended):
        # One finding in place of one for each measurement that is missing for the same reason.
        findings = [finding for finding in findings if not finding.unmeasured]
    if not ended:
        code = "did_not_finish" if began else "never_ran"
        by_check = any(isinstance(one, Message) and one.code == "gate_not_passed" for one in why)
        kind: FindingKind = "skip" if by_check and not began else "error"
        findings.append(Finding(kind, check.id, code, known(why=why)))
    elif len(began) != 1 or len(ended) != 1:
        times = {"began": len(began), "ended": len(ended)}
        findings.append(Finding("error", check.id, "ran_again", times))
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
