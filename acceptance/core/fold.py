"""The fold: plan and journal in, verdict out.

A pure function; every report is a view of its result. It trusts no summary: each value is compared
with the plan's limit again, whatever the session said of it. A planned measurement that the journal
does not contain is not a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acceptance.core import duration, foreign_process, repeat, whole_run
from acceptance.core.criterion import Siblings
from acceptance.core.finding import Finding
from acceptance.core.incident import event_findings, without_duplicates
from acceptance.core.judgement import covers, judge_due
from acceptance.core.machine_facts import BaselineComparison, MachineFacts
from acceptance.core.plan import Due, Plan, PlannedCheck
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
)
from acceptance.core.spans import CheckSpans, load_progress, run_notes
from acceptance.core.verdict import _RANK, CheckResult, UnreadableRun, Verdict, VerdictWord, worst
from acceptance.core.waiver import Waiver

CompareWithBaseline = Callable[[MachineFacts, Sequence[Entry]], BaselineComparison]


def fold(entries: Sequence[Entry], compare: CompareWithBaseline | None = None) -> Verdict:
    """Judge a run from its journal, in the order of the merged segments.

    `compare` compares the machine with the facts of its baseline (`machine.changes.judge` gives
    it). Raises UnreadableRun when the journal has no beginning, or more than one, and ValueError
    where the plan holds such facts and nothing compares them.
    """
    starts = [entry.body for entry in entries if isinstance(entry.body, RunStarted)]
    if len(starts) != 1:
        raise UnreadableRun(
            f"the journal holds {len(starts)} beginnings of a run, not one: nothing can be "
            "judged from it; run the test again"
        )
    start = starts[0]
    plan = start.plan
    bodies = [entry.body for entry in entries]
    night = whole_run.postponement(bodies)
    if night is not None and not whole_run.has_run(bodies):
        return _skipped(start, night, whole_run.postponement_finding(night))
    entries = without_duplicates(entries)
    spans = CheckSpans(entries)
    until_then = load_progress(entries, spans)
    events: dict[str | None, list[Event]] = {}
    for entry in entries:
        if isinstance(entry.body, Event):
            moment = entry.body.boot_s if entry.body.boot_s is not None else entry.boot_s
            events.setdefault(spans.at(entry.boot, moment), []).append(entry.body)
    stopped = next(
        (
            entry.body.detail
            for entry in entries
            if isinstance(entry.body, RunEnded) and not entry.body.complete
        ),
        None,
    )
    first, second = repeat.split_repeat(entries)
    uses = foreign_process.uses(entries)
    ids = {check.id for check in plan.checks}
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
    homeless = [event for name, found in events.items() if name not in ids for event in found]
    findings = [
        *whole_run.findings(plan, bodies, stopped is not None),
        *event_findings(homeless, "run"),
    ]
    changed = BaselineComparison()
    if plan.birth is not None:
        if compare is None:
            raise ValueError("the plan holds the facts of a baseline, and nothing compares them")
        changed = compare(plan.birth, entries)
    findings += changed.findings
    kinds = {finding.kind for finding in findings} | {
        finding.kind for check in checks for finding in check.findings
    }
    if night is not None and whole_run.was_abandoned(bodies) and "fail" not in kinds:
        return _skipped(
            start, night, whole_run.postponement_finding(night, after_s=duration.seconds(entries))
        )
    word: VerdictWord = (
        "FAIL" if "fail" in kinds else "UNJUDGED" if kinds & {"error", "skip"} else "PASS"
    )
    return Verdict(
        verdict=word,
        scope=plan.scope,
        run_id=start.run_id,
        profile=plan.profile,
        inventory_declared=plan.inventory_declared,
        checks=checks,
        findings=tuple(findings),
        stale_waivers=tuple(
            f"{waiver}: {waiver.reason}" for waiver in plan.waivers if _is_stale(waiver, checks)
        ),
        notes=(*run_notes(entries, spans), *foreign_process.use_notes(entries, uses)),
        provenance=start.provenance,
        changed=changed.notes,
    )


def _why(stopped: str | None, until_then: str | None) -> str | None:
    """Why a check did not finish, as far as is known, and what its loads proved before."""
    return (
        "; ".join(filter(None, [stopped, until_then and f"proved until then: {until_then}"]))
        or None
    )


def _is_stale(waiver: Waiver, checks: Sequence[CheckResult]) -> bool:
    """Whether everything that a waiver covers was measured and passed without it.

    A measurement that was not taken says nothing about a waiver.
    """
    spoken_of = [
        one for check in checks for one in check.judged if covers(waiver, check.id, one.due)
    ]
    passed = (
        one.value is not None and all(finding.kind == "warn" for finding in one.findings)
        for one in spoken_of
    )
    return bool(spoken_of) and all(passed)


def _skipped(start: RunStarted, night: Postponed, finding: Finding) -> Verdict:
    """The verdict of a run that proves nothing: all checks skipped, for one common reason."""
    checks = tuple(
        CheckResult(check.id, check.title, check.session, "skip", 0.0, (), (), ())
        for check in start.plan.checks
    )
    return Verdict(
        verdict="FAIL" if finding.kind == "fail" else "UNJUDGED",
        scope=start.plan.scope,
        run_id=start.run_id,
        profile=start.plan.profile,
        inventory_declared=start.plan.inventory_declared,
        checks=checks,
        findings=(finding,),
        stale_waivers=(),
        notes=(),
        provenance=start.provenance,
        postponed=night,
    )


def _by_figure(measured: Sequence[Measured]) -> dict[tuple[str, str], list[Measured]]:
    found: dict[tuple[str, str], list[Measured]] = {}
    for body in measured:
        found.setdefault((body.measurement, body.component), []).append(body)
    return found


def _peers(check: PlannedCheck, due: Due, measured: Sequence[Measured]) -> dict[str, float]:
    """The plausible values, by component, of the measurement that a ratio is made of.

    Of several values of a component none counts: a ratio of one of them proves nothing.
    """
    of = next((one.of for one in due.criteria if isinstance(one, Siblings)), None)
    if of is None:
        return {}
    ceilings = {one.component: one.ceiling for one in check.due if one.measurement == of}
    found: dict[str, list[float | None]] = {}
    for body in measured:
        if body.measurement == of:
            found.setdefault(body.component, []).append(body.value)
    values = {name: told[0] for name, told in found.items() if len(told) == 1}
    return {
        name: value
        for name, value in values.items()
        if value is not None
        and ((ceiling := ceilings.get(name)) is None or ceiling.grade(value) != "fail")
    }


def _check(
    check: PlannedCheck,
    plan: Plan,
    own: Sequence[Body],
    second: Sequence[Entry],
    events: list[Event],
    shared: Sequence[Finding],
    why: str | None,
) -> CheckResult:
    began = [body for body in own if isinstance(body, CheckStarted)]
    ended = [body for body in own if isinstance(body, CheckEnded)]
    measured = [body for body in own if isinstance(body, Measured)]
    skips = [body for body in own if isinstance(body, Skipped)]
    again = [
        entry.body
        for entry in second
        if isinstance(entry.body, Measured) and entry.body.check == check.id
    ]
    one, two = _by_figure(measured), _by_figure(again)
    judged = tuple(
        judge_due(
            due,
            check.id,
            one.get(name, ()),
            skips,
            plan.waivers,
            two.get(name, ()),
            (_peers(check, due, measured), _peers(check, due, again)),
        )
        for due in check.due
        for name in [(due.measurement, due.component)]
    )
    findings = [finding for one in judged for finding in one.findings]
    due = {(one.measurement, one.component) for one in check.due}
    for extra in (*measured, *again):
        if (extra.measurement, extra.component) not in due:
            text = (
                f"measured {extra.measurement} on {extra.component}, which the plan does not hold"
            )
            findings.append(Finding("error", check.id, text))
    if not ended or any(body.outcome == "error" for body in ended):
        # One finding in place of one for each measurement that is missing for the same reason.
        findings = [finding for finding in findings if not finding.unmeasured]
    if not ended:
        text = "did not finish" if began else "never ran"
        findings.append(Finding("error", check.id, f"{text}{f': {why}' if why else ''}"))
    elif len(began) != 1 or len(ended) != 1:
        text = (
            f"began {len(began)} and ended {len(ended)} times, not once: a check that has run "
            "is "
            "never run again"
        )
        findings.append(Finding("error", check.id, text))
    for body in ended:
        waived = body.outcome == "skip" and any(one.skipped for one in judged)
        is_reported = any(
            finding.kind == body.outcome
            and (finding.text in body.message or body.message in finding.text)
            for finding in findings
        )
        if body.outcome != "pass" and not waived and not is_reported:
            text = body.message or f"ended as {body.outcome} without saying why"
            findings.append(Finding(body.outcome, check.id, text))
    findings += repeat.repeat_findings(check.id, second, findings)
    findings += [*event_findings(events, check.id, findings), *shared]
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
        tuple(events),
    )
