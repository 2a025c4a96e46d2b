"""The verdict of a run and of its checks, as types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from acceptance.core.collection import Session
from acceptance.core.finding import Finding
from acceptance.core.judgement import Judgement
from acceptance.core.message import Message
from acceptance.core.plan import Reduction, Scope
from acceptance.core.record import Event, Outcome, Postponed
from acceptance.core.waiver import Waiver

VerdictWord = Literal["PASS", "FAIL", "UNJUDGED"]
_RANK: dict[Outcome, int] = {"pass": 0, "skip": 1, "error": 2, "fail": 3}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes: fail > error > skip > pass."""
    return max(outcomes, key=lambda outcome: _RANK[outcome], default="pass")


class BaselineChanges(msgspec.Struct, frozen=True):
    """What differs from the baseline.

    `findings` are of the run as a whole (fail, warn, error); `notes` decide nothing.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[Message, ...] = ()


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
    waivers: tuple[Waiver, ...]
    provenance: dict[str, str]
    # nothing was run, or the run was given up, because the machine is in use
    postponed: Postponed | None = None
    changed: tuple[Message, ...] = ()  # differences from the baseline that decide nothing
    shortened: tuple[Reduction, ...] = ()  # the plan's: why a whole run is partial all the same

    def __hash__(self) -> int:
        return hash((self.run_id, self.verdict))

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """The findings of these kinds, each fault once: the run's own, then check by check."""
        every = (self.findings, *(check.findings for check in self.checks))
        return tuple(
            finding
            for found in every
            for finding in found
            if finding.kind in kinds and finding.duplicate_of is None
        )

    def duplicates(self) -> tuple[Finding, ...]:
        """The findings of faults that another check's finding counts, check by check."""
        every = (self.findings, *(check.findings for check in self.checks))
        return tuple(one for found in every for one in found if one.duplicate_of is not None)
