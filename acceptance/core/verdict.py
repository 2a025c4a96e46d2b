"""The verdict of a run and of its checks, as types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from acceptance.core.collection import Session
from acceptance.core.finding import Finding
from acceptance.core.judgement import Judgement
from acceptance.core.plan import Scope
from acceptance.core.record import Event, Outcome, Postponed

VerdictWord = Literal["PASS", "FAIL", "UNJUDGED"]
ExitCode = Literal[0, 1, 3]
_RANK: dict[Outcome, int] = {"pass": 0, "skip": 1, "error": 2, "fail": 3}


class UnreadableRun(Exception):
    """The journal holds no plan to judge against; the message is one sentence."""


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes: fail > error > skip > pass."""
    return max(outcomes, key=lambda outcome: _RANK[outcome], default="pass")


class CheckResult(msgspec.Struct, frozen=True):
    """One planned check and its results.

    A waived skip counts as a pass of the run but stays a skip here.
    """

    id: str
    title: str
    session: Session
    outcome: Outcome
    seconds: float
    judged: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    events: tuple[Event, ...]


class Verdict(msgspec.Struct, frozen=True):
    """The verdict of a run, with every reason for it."""

    verdict: VerdictWord
    scope: Scope
    run_id: str
    profile: str
    inventory_declared: bool
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...]  # of the run as a whole
    stale_waivers: tuple[str, ...]
    notes: tuple[str, ...]
    provenance: dict[str, str]
    # nothing was run, or the run was given up, because the machine is in use
    postponed: Postponed | None = None
    changed: tuple[str, ...] = ()  # differences from the baseline that decide nothing

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """Every finding of these kinds: the run's own first, then check by check."""
        own = (finding for finding in self.findings if finding.kind in kinds)
        return (
            *own,
            *(
                finding
                for check in self.checks
                for finding in check.findings
                if finding.kind in kinds
            ),
        )

    def count(self, outcome: Outcome) -> int:
        """How many checks have this outcome."""
        return sum(check.outcome == outcome for check in self.checks)

    def waived_whole(self) -> tuple[str, ...]:
        """Subjects in which everything needed a waiver.

        That is each value with a limit, and each measurement that was not taken.
        """
        subjects: dict[str, list[bool]] = {}
        for check in self.checks:
            found = subjects.setdefault(check.id.partition(".")[0], [])
            found += [
                one.waived for one in check.judged if one.due.limit is not None or one.value is None
            ]
        return tuple(subject for subject, found in subjects.items() if found and all(found))

    def exit_code(self) -> ExitCode:
        """0 PASS, 1 FAIL, 3 UNJUDGED."""
        codes: dict[VerdictWord, ExitCode] = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}
        return codes[self.verdict]
