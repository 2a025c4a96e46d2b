"""The verdict of a run and of its checks, as types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from acceptance.core.collection import Session
from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.finding import Finding
from acceptance.core.judgement import Judgement
from acceptance.core.machine_facts import KnownChange
from acceptance.core.message import Message
from acceptance.core.plan import Reduction, Scope
from acceptance.core.record import Event, Outcome, Postponed
from acceptance.core.waiver import Waiver

VerdictWord = Literal["PASS", "FAIL", "UNJUDGED"]
WORDS: tuple[VerdictWord, ...] = ("PASS", "UNJUDGED", "FAIL")  # from the best to the worst
EXIT_CODES: Mapping[VerdictWord, Literal[0, 1, 3]] = {
    "PASS": PASS,
    "FAIL": FAIL,
    "UNJUDGED": UNJUDGED,
}
_RANK: dict[Outcome, int] = {"pass": 0, "skip": 1, "error": 2, "fail": 3}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes: fail > error > skip > pass."""
    return max(outcomes, key=lambda outcome: _RANK[outcome], default="pass")


def worst_word(words: Iterable[VerdictWord]) -> VerdictWord:
    """The worst of several verdicts: FAIL > UNJUDGED > PASS."""
    return max(words, key=WORDS.index, default="PASS")


class BaselineChanges(msgspec.Struct, frozen=True):
    """What differs from the baseline.

    `findings` are of the run as a whole (fail, warn, error); `notes` decide nothing. `known` is
    what the next night needs to know; None if the run could not be compared.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[Message, ...] = ()
    known: tuple[KnownChange, ...] | None = None


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
    """Every finding of a run, and the word that follows from them."""

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
        return hash(self.run_id)

    @property
    def verdict(self) -> VerdictWord:
        """The word: a failure stays one, and what is open leaves all the rest unproved."""
        kinds = {finding.kind for finding in self._every()}
        return "FAIL" if "fail" in kinds else "UNJUDGED" if kinds & {"error", "skip"} else "PASS"

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """The exit code of a program that says it."""
        return EXIT_CODES[self.verdict]

    def _every(self) -> Iterator[Finding]:
        yield from self.findings
        for check in self.checks:
            yield from check.findings

    def of_kind(self, *kinds: str) -> tuple[Finding, ...]:
        """The findings of these kinds, each fault once: the run's own, then check by check."""
        return tuple(one for one in self._every() if one.kind in kinds and one.duplicate_of is None)

    def duplicates(self) -> tuple[Finding, ...]:
        """The findings of faults that another check's finding counts, check by check."""
        return tuple(one for one in self._every() if one.duplicate_of is not None)
