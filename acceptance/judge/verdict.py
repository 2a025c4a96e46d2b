"""The fold: plan and journal in, verdict out. A pure function; every report is a view of what it returns.

It trusts no summary. A value is held against the plan's limit again here, whatever the session said of it, and what the plan names and
the journal does not hold is not a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from acceptance.judge import duration, foreign_processes, inventory_drift, second_look, whole_run
from acceptance.judge.incidents import findings_of, told_once
from acceptance.judge.judgement import Finding, Judged, covers, judge_due
from acceptance.judge.machine import Waiver
from acceptance.judge.plan import Plan, PlannedCheck, Scope, Session
from acceptance.judge.record import (
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Outcome,
    Postponed,
    RunEnded,
    RunStarted,
    Skipped,
)
from acceptance.judge.spans import Spans, notes, proved

Word = Literal["PASS", "FAIL", "UNJUDGED"]
ExitCode = Literal[0, 1, 3]
_RANK: dict[Outcome, int] = {"pass": 0, "skip": 1, "error": 2, "fail": 3}


class UnreadableRun(Exception):
    """The journal holds no plan to judge against; the message is one sentence."""


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes: fail > error > skip > pass."""
    return max(outcomes, key=lambda outcome: _RANK[outcome], default="pass")


class CheckResult(msgspec.Struct, frozen=True):
    """One planned check with all that is known of it. A waived skip counts as a pass of the run but stays a skip here."""

    id: str
    title: str
    session: Session
    outcome: Outcome
    seconds: float
    judged: tuple[Judged, ...]
    findings: tuple[Finding, ...]
    events: tuple[Event, ...]


class Verdict(msgspec.Struct, frozen=True):
    """The verdict of a run, with every reason for it."""

    verdict: Word
    scope: Scope
    run_id: str
    profile: str
    inventory_declared: bool
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]  # of the run as a whole
    stale_waivers: tuple[str, ...]
    notes: tuple[str, ...]
    provenance: dict[str, str]
    postponed: Postponed | None = None  # nothing was run, or it was given up, because the machine is in use
    changed: tuple[str, ...] = ()  # what is not as the baseline has it, and decides nothing

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """Every finding of these kinds, the run's own first, then check by check."""
        own = (finding for finding in self.findings if finding.kind in kinds)
        return (*own, *(finding for check in self.checks for finding in check.findings if finding.kind in kinds))

    def count(self, outcome: Outcome) -> int:
        """How many checks came to this outcome."""
        return sum(check.outcome == outcome for check in self.checks)

    def waived_whole(self) -> tuple[str, ...]:
        """Subjects in which waivers were needed for everything: for each value with a limit, and for each that was not measured."""
        subjects: dict[str, list[bool]] = {}
        for check in self.checks:
            found = subjects.setdefault(check.id.partition(".")[0], [])
            found += [one.waived for one in check.judged if one.due.limit is not None or one.value is None]
        return tuple(subject for subject, found in subjects.items() if found and all(found))

    def exit_code(self) -> ExitCode:
        """0 PASS, 1 FAIL, 3 UNJUDGED."""
        codes: dict[Word, ExitCode] = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}
        return codes[self.verdict]


def fold(entries: Sequence[Entry]) -> Verdict:
    """Judge a run from its journal, in the order of the merged segments.

    Raises UnreadableRun when the journal has no beginning, or two.
    """
    starts = [entry.body for entry in entries if isinstance(entry.body, RunStarted)]
    if len(starts) != 1:
        raise UnreadableRun(
            f"the journal holds {len(starts)} beginnings of a run, not one: nothing can be judged from it; run the test again"
        )
    start = starts[0]
    plan = start.plan
    bodies = [entry.body for entry in entries]
    night = whole_run.postponed(bodies)
    if night is not None and not whole_run.ran(bodies):
        return _skipped(start, night, whole_run.skipped(night))
    entries = told_once(entries)
    spans = Spans(entries)
    until_then = proved(entries, spans)
    events: dict[str | None, list[Event]] = {}
    for entry in entries:
        if isinstance(entry.body, Event):
            moment = entry.body.boot_s if entry.body.boot_s is not None else entry.boot_s
            events.setdefault(spans.at(entry.boot, moment), []).append(entry.body)
    stopped = next(
        (entry.body.detail for entry in entries if isinstance(entry.body, RunEnded) and not entry.body.complete), None
    )
    first, second = second_look.divide(entries)
    uses = foreign_processes.uses(entries)
    ids = {check.id for check in plan.checks}
    checks = tuple(
        _check(
            check,
            plan,
            first,
            second,
            events.get(check.id, []),
            foreign_processes.findings(check, uses, spans),
            _why(stopped, until_then.get(check.id)),
        )
        for check in plan.checks
    )
    homeless = [event for name, found in events.items() if name not in ids for event in found]
    findings = [*whole_run.findings(plan, bodies, stopped is not None), *findings_of(homeless, "run")]
    changed = inventory_drift.held(plan.birth, entries) if plan.birth else inventory_drift.Held((), ())
    findings += changed.findings
    kinds = {finding.kind for finding in findings} | {finding.kind for check in checks for finding in check.findings}
    if night is not None and whole_run.given_up(bodies) and "fail" not in kinds:
        return _skipped(start, night, whole_run.skipped(night, after_s=duration.seconds(entries)))
    word: Word = "FAIL" if "fail" in kinds else "UNJUDGED" if kinds & {"error", "skip"} else "PASS"
    return Verdict(
        verdict=word,
        scope=plan.scope,
        run_id=start.run_id,
        profile=plan.profile,
        inventory_declared=plan.inventory_declared,
        checks=checks,
        findings=tuple(findings),
        stale_waivers=tuple(f"{waiver}: {waiver.reason}" for waiver in plan.waivers if _is_stale(waiver, checks)),
        notes=(*notes(entries, spans), *foreign_processes.notes(entries, uses)),
        provenance=start.provenance,
        changed=changed.notes,
    )


def _why(stopped: str | None, until_then: str | None) -> str | None:
    """Why a check did not come to its end, as far as it is known, and what its loads had proved until then."""
    return "; ".join(filter(None, [stopped, until_then and f"proved until then: {until_then}"])) or None


def _is_stale(waiver: Waiver, checks: Sequence[CheckResult]) -> bool:
    """Whether all that a waiver speaks of was measured and passed without it; what was not measured says nothing of a waiver."""
    spoken_of = [one for check in checks for one in check.judged if covers(waiver, check.id, one.due)]
    passed = (one.value is not None and all(finding.kind == "warn" for finding in one.findings) for one in spoken_of)
    return bool(spoken_of) and all(passed)


def _skipped(start: RunStarted, night: Postponed, finding: Finding) -> Verdict:
    """The verdict of a night that proves nothing: every check was skipped, and the reason is the whole run's."""
    checks = tuple(
        CheckResult(check.id, check.title, check.session, "skip", 0.0, (), (), ()) for check in start.plan.checks
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


def _check(
    check: PlannedCheck,
    plan: Plan,
    entries: Sequence[Entry],
    second: Sequence[Entry],
    events: list[Event],
    shared: Sequence[Finding],
    why: str | None,
) -> CheckResult:
    own = [entry.body for entry in entries if getattr(entry.body, "check", None) == check.id]
    began = [body for body in own if isinstance(body, CheckStarted)]
    ended = [body for body in own if isinstance(body, CheckEnded)]
    measured = [body for body in own if isinstance(body, Measured)]
    skips = [body for body in own if isinstance(body, Skipped)]
    again = [entry.body for entry in second if isinstance(entry.body, Measured) and entry.body.check == check.id]
    judged = tuple(judge_due(due, check.id, measured, skips, plan.waivers, again) for due in check.due)
    findings = [finding for one in judged for finding in one.findings]
    due = {(one.measurement, one.component) for one in check.due}
    for extra in (*measured, *again):
        if (extra.measurement, extra.component) not in due:
            text = f"measured {extra.measurement} on {extra.component}, which the plan does not hold"
            findings.append(Finding("error", check.id, text))
    if not ended or any(body.outcome == "error" for body in ended):
        # One sentence instead of one for every measurement that is missing for the same cause.
        findings = [finding for finding in findings if not finding.unmeasured]
    if not ended:
        text = "did not finish" if began else "never ran"
        findings.append(Finding("error", check.id, f"{text}{f': {why}' if why else ''}"))
    elif len(began) != 1 or len(ended) != 1:
        text = f"began {len(began)} and ended {len(ended)} times, not once: a check that has run is never run again"
        findings.append(Finding("error", check.id, text))
    for body in ended:
        waived = body.outcome == "skip" and any(one.skipped for one in judged)
        told = any(
            finding.kind == body.outcome and (finding.text in body.message or body.message in finding.text)
            for finding in findings
        )
        if body.outcome != "pass" and not waived and not told:
            text = body.message or f"ended as {body.outcome} without saying why"
            findings.append(Finding(body.outcome, check.id, text))
    findings += second_look.troubles(check.id, second, findings)
    findings += [*findings_of(events, check.id, findings), *shared]
    outcome = worst([finding.kind for finding in findings if finding.kind in _RANK])
    if outcome == "pass" and judged and all(one.skipped for one in judged):
        outcome = "skip"  # waived, so the run may pass; the check itself did not
    seconds = sum(body.seconds for body in ended)
    return CheckResult(check.id, check.title, check.session, outcome, seconds, judged, tuple(findings), tuple(events))
