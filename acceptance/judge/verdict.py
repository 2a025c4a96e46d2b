"""The fold: plan and journal in, verdict out. A pure function; every report is a view of what it returns.

It trusts no summary. A value is held against the plan's limit again here, whatever the session said of it, and what the plan names and
the journal does not hold is not a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from acceptance.judge.judgement import Finding, Judged, judge_due
from acceptance.judge.plan import Plan, PlannedCheck, Session
from acceptance.judge.record import (
    HARMFUL,
    CheckEnded,
    CheckStarted,
    Entry,
    Event,
    Measured,
    Note,
    Outcome,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
)

Word = Literal["PASS", "FAIL", "UNJUDGED"]
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
    scope: str
    run_id: str
    profile: str
    inventory_declared: bool
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]  # of the run as a whole
    stale_waivers: tuple[str, ...]
    notes: tuple[str, ...]
    provenance: dict[str, str]

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """Every finding of these kinds, the run's own first, then check by check."""
        own = (finding for finding in self.findings if finding.kind in kinds)
        return (*own, *(finding for check in self.checks for finding in check.findings if finding.kind in kinds))

    def count(self, outcome: Outcome) -> int:
        """How many checks came to this outcome."""
        return sum(check.outcome == outcome for check in self.checks)

    def exit_code(self) -> int:
        """0 PASS, 1 FAIL, 3 UNJUDGED."""
        return {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}[self.verdict]


class _Spans:
    """When each check ran, by the boot-time clock: (boot, start, end)."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._open: dict[str, tuple[int, float]] = {}
        self.spans: list[tuple[str, int, float, float]] = []
        for entry in entries:
            if isinstance(entry.body, CheckStarted):
                self._open[entry.body.check] = (entry.boot, entry.boot_s)
            elif isinstance(entry.body, CheckEnded) and entry.body.check in self._open:
                boot, start = self._open.pop(entry.body.check)
                self.spans.append((entry.body.check, boot, start, entry.boot_s))
        self.spans += [(check, boot, start, float("inf")) for check, (boot, start) in self._open.items()]

    def at(self, boot: int, moment: float) -> str | None:
        """The check that was running at this moment."""
        return next((check for check, b, start, end in self.spans if b == boot and start <= moment <= end), None)


def fold(entries: Sequence[Entry]) -> Verdict:
    """Judge a run from its journal, in the order of the merged segments.

    Raises UnreadableRun when the journal has no beginning, or two.
    """
    starts = [entry.body for entry in entries if isinstance(entry.body, RunStarted)]
    if len(starts) != 1:
        raise UnreadableRun(
            f"the journal holds {len(starts)} beginnings of a run, not one: nothing can be judged from it"
        )
    start = starts[0]
    plan = start.plan
    spans = _Spans(entries)
    events: dict[str | None, list[Event]] = {}
    for entry in entries:
        if isinstance(entry.body, Event):
            moment = entry.body.boot_s if entry.body.boot_s is not None else entry.boot_s
            events.setdefault(spans.at(entry.boot, moment), []).append(entry.body)
    used: set[int] = set()
    stopped = next(
        (entry.body.detail for entry in entries if isinstance(entry.body, RunEnded) and not entry.body.complete), None
    )
    ids = {check.id for check in plan.checks}
    checks = tuple(_check(check, plan, entries, events.get(check.id, []), stopped, used) for check in plan.checks)
    homeless = [event for name, found in events.items() if name not in ids for event in found]
    findings = (*_run_findings(plan, start, entries, ids), *_event_findings(homeless, "run", plan))
    stale = tuple(f"{waiver}: {waiver.reason}" for index, waiver in enumerate(plan.waivers) if index not in used)
    kinds = {finding.kind for finding in findings} | {finding.kind for check in checks for finding in check.findings}
    word: Word = "FAIL" if "fail" in kinds else "UNJUDGED" if kinds & {"error", "skip"} or not checks else "PASS"
    return Verdict(
        verdict=word,
        scope=plan.scope,
        run_id=start.run_id,
        profile=plan.profile,
        inventory_declared=plan.inventory_declared,
        checks=checks,
        findings=findings,
        stale_waivers=stale if plan.scope == "full" else (),
        notes=tuple(entry.body.text for entry in entries if isinstance(entry.body, Note) and not entry.body.trouble),
        provenance=start.provenance,
    )


def _check(
    check: PlannedCheck, plan: Plan, entries: Sequence[Entry], events: list[Event], stopped: str | None, used: set[int]
) -> CheckResult:
    own = [entry.body for entry in entries if getattr(entry.body, "check", None) == check.id]
    ended = [body for body in own if isinstance(body, CheckEnded)]
    measured = [body for body in own if isinstance(body, Measured)]
    skips = [body for body in own if isinstance(body, Skipped)]
    judged = tuple(judge_due(due, check.id, measured, skips, plan.waivers, used) for due in check.due)
    findings = [finding for one in judged for finding in one.findings]
    due = {(one.measurement, one.component) for one in check.due}
    for extra in measured:
        if (extra.measurement, extra.component) not in due:
            text = f"measured {extra.measurement} on {extra.component}, which the plan does not hold"
            findings.append(Finding("error", check.id, text))
    if not ended:
        started = any(isinstance(body, CheckStarted) for body in own)
        text = "did not finish" if started else "never ran"
        reason = f": {stopped}" if stopped else ""
        # One sentence instead of one for every measurement that is missing for the same cause.
        findings = [finding for finding in findings if finding.kind != "error"]
        findings.append(Finding("error", check.id, f"{text}{reason}"))
    for body in ended:
        if body.outcome == "error":
            findings = [finding for finding in findings if not finding.unmeasured]
        waived = body.outcome == "skip" and all(one.skipped or one.value is not None for one in judged)
        told = any(finding.kind == body.outcome for finding in findings)
        if body.outcome != "pass" and not waived and not told:
            findings.append(
                Finding(body.outcome, check.id, body.message or f"ended as {body.outcome} without saying why")
            )
    if len(ended) > 1:
        findings.append(
            Finding("error", check.id, f"ended {len(ended)} times: a check that has run is never run again")
        )
    findings += _event_findings(events, check.id, plan)
    outcome = worst([finding.kind for finding in findings if finding.kind in _RANK])
    if outcome == "pass" and judged and all(one.skipped for one in judged):
        outcome = "skip"  # waived, so the run may pass; the check itself did not
    seconds = sum(body.seconds for body in ended)
    return CheckResult(check.id, check.title, check.session, outcome, seconds, judged, tuple(findings), tuple(events))


def _event_findings(events: Sequence[Event], check: str, plan: Plan) -> list[Finding]:
    found = []
    for event in events:
        where = f" on {event.component}" if event.component else ""
        text = f"{event.kind}{f' {event.code}' if event.code is not None else ''}{where}: {event.meaning}"
        if event.severity in HARMFUL:
            kind: Literal["fail", "error"] = "fail" if event.hardware else "error"
            found.append(Finding(kind, check, text, component=event.component, action=event.action, quote=event.text))
        elif event.severity == "warning":
            found.append(Finding("warn", check, text, component=event.component, action=event.action, quote=event.text))
    return found


def _run_findings(plan: Plan, start: RunStarted, entries: Sequence[Entry], ids: set[str]) -> list[Finding]:
    """What keeps the whole run from passing, whatever its checks say."""
    bodies = [entry.body for entry in entries]
    stopped = any(isinstance(body, RunEnded) and not body.complete for body in bodies)
    found = [Finding("error", "run", gap) for gap in plan.gaps]
    if start.injected is not None:
        found.append(
            Finding("error", "run", f"a fault was injected on purpose ({start.injected}): such a run never passes")
        )
    for session in dict.fromkeys(check.session for check in plan.checks):
        begun = [body for body in bodies if isinstance(body, SessionStarted) and body.session == session]
        done = [body for body in bodies if isinstance(body, SessionEnded) and body.session == session]
        if any(body.digest != plan.digest for body in begun):
            found.append(
                Finding(
                    "error", "run", f"session {session} ran another version of rigproof than the one that made the plan"
                )
            )
        found += [Finding("error", "run", f"session {session} {body.detail}") for body in done if not body.complete]
        if not begun and not done and stopped:
            continue  # said once, below
        if len(begun) != 1 or len(done) != 1:
            counts = f"began {len(begun)} and ended {len(done)} times"
            found.append(Finding("error", "run", f"session {session} {counts}, not once"))
    found += [Finding("error", "run", body.text) for body in bodies if isinstance(body, Note) and body.trouble]
    for body in bodies:
        name = getattr(body, "check", None)
        if isinstance(body, CheckEnded | Measured | Skipped) and name not in ids:
            found.append(Finding("error", "run", f"{name} was run but is not in the plan"))
    ends = [body for body in bodies if isinstance(body, RunEnded)]
    if not any(end.complete for end in ends) or len(ends) != 1:
        told = "; ".join(end.detail for end in ends if not end.complete)
        found.append(Finding("error", "run", f"the run did not come to its end{f': {told}' if told else ''}"))
    found += [Finding("error", "run", body.detail) for body in bodies if isinstance(body, RunClosed)]
    return found
