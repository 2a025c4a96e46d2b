"""The verdict of a run and of its checks, as types, and how a due measurement is judged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.finding import (
    DRIFT,
    About,
    Finding,
    FindingKind,
    Peers,
    Plausible,
    Waiver,
    Within,
)
from acceptance.core.machine_facts import KnownChange
from acceptance.core.message import NO_VALUES, Message, Text, Unmeasured, english, known
from acceptance.core.parts import Component
from acceptance.core.past import DriftJudgement
from acceptance.core.plan import Due, PlannedCheck, Reduction, Scope, Session, matches_patterns
from acceptance.core.record import Event, Measured, Outcome, Postponed, Skipped

Figures = dict[tuple[str, Component], list[Measured]]


class Judgement(msgspec.Struct, frozen=True):
    """A due measurement after judgement.

    `value` is the worst measured value, None when none was finite. `waived` means that a waiver was
    needed; `skipped`, that it was needed because nothing was measured. `again` is the worst value
    of the repeat, where there was one. `drift` compares the value with the earlier nights, where
    the plan holds any. `unmeasured` is why a skip left it out, where the journal says so.
    """

    due: Due
    value: float | None
    serial: str | None
    note: Text | None
    findings: tuple[Finding, ...]
    skipped: bool = False
    waived: bool = False
    again: float | None = None
    drift: DriftJudgement | None = None
    unmeasured: Unmeasured | None = None


def peers(check: PlannedCheck, due: Due, figures: Figures) -> Peers:
    """The values, by component, of the measurement that a ratio is made of.

    Of several values of a component none counts: a ratio of one of them proves nothing.
    """
    if (equal := due.siblings) is None:
        return {}
    dues = {one.component: one for one in check.due if one.measurement == equal.of}
    return {
        one: value if one not in dues or is_possible(dues[one], value) else None
        for (measurement, one), told in figures.items()
        if measurement == equal.of and len(told) == 1 and (value := told[0].value) is not None
    }


def judge(
    check: PlannedCheck,
    measured: Sequence[Measured],
    skips: Sequence[Skipped],
    waivers: Sequence[Waiver],
    repeated: Sequence[Measured] = (),
) -> tuple[Judgement, ...]:
    """Judge all that is due from a check by everything that it measured and skipped.

    `repeated` are the values of its repeat.
    """
    first, second = by_figure(measured), by_figure(repeated)
    return tuple(
        judge_due(
            due,
            check.id,
            first.get(figure, ()),
            skips,
            waivers,
            second.get(figure, ()),
            (peers(check, due, first), peers(check, due, second)),
        )
        for due in check.due
        for figure in [(due.measurement, due.component)]
    )


def by_figure(measured: Sequence[Measured]) -> Figures:
    """The values by measurement and component."""
    found: dict[tuple[str, Component], list[Measured]] = {}
    for body in measured:
        found.setdefault((body.measurement, body.component), []).append(body)
    return found


def judge_due(
    due: Due,
    check: str,
    measured: Sequence[Measured],
    skips: Sequence[Skipped],
    waivers: Sequence[Waiver],
    repeated: Sequence[Measured] = (),
    made_of: tuple[Peers, Peers] = ({}, {}),
) -> Judgement:
    """Judge one due measurement from its values and what its check skipped.

    `measured` are its values, `repeated` those of the repeat. Limit and ceiling apply to every one,
    and more than one is an error. The earlier nights are compared with the worst value of each.

    `made_of` are the `peers` at first and in the repeat, which a ratio must follow from.
    """
    excuses = tuple(one for one in waivers if _may_excuse(one, check, due))
    about = About(check, due.measurement, due.component, due.unit, excuses=excuses)
    if not measured:
        return _unmeasured(due, about, skips, waivers)
    findings: list[Finding] = []
    first = _finite(about, measured, findings)
    second = _finite(about, repeated, findings)
    for bodies, values_of in zip((first, second), made_of, strict=True):
        for body in bodies:
            assert body.value is not None
            noted = about._replace(note=body.note)
            findings += _judge_value(due, noted, body.value, values_of)
    for again in filter(lambda told: len(told) > 1, (measured, repeated)):
        findings.append(
            about.finding(
                "error",
                english(
                    "measured_again",
                    "{measurement}[ on {component}] was measured {times} times in one run: one "
                    "value of each is due",
                ),
                {"times": len(again)},
            )
        )
    worst, later = _worst_of(due, first), _worst_of(due, second)
    value, other = (one.value if one else None for one in (worst, later))
    drifted = None
    if due.past is not None and value is not None and is_possible(due, value):
        repeat = other if other is not None and is_possible(due, other) else None
        drifted = due.past.judge(due.unit, value, repeat)
        for drift in drifted.findings:
            told = about.finding(drift.kind, drift.code, NO_VALUES)
            findings.append(replace(told, event=f"{DRIFT}.{drift.what}", drift=drift))
    return Judgement(
        due,
        value,
        worst.serial if worst else None,
        worst.note if worst else None,
        tuple(findings),
        waived=any(finding.kind == "waived" for finding in findings),
        again=other,
        drift=drifted,
    )


def is_possible(due: Due, value: float) -> bool:
    """Whether a value is within what is physically possible."""
    return due.ceiling is None or due.ceiling.grade(value) != "fail"


def _judge_value(due: Due, about: About, value: float, of: Peers) -> Iterator[Finding]:
    """The findings from one value; one that cannot be proves nothing.

    Neither does a ratio to one: the impossibly fast of two equals does not make the other slow.
    """
    equal = due.siblings
    if equal is not None and (wrong := equal.judge(about._replace(note=None), value, of)):
        yield wrong
        made = equal.ratio(due.component, of)
        if made is None or due.limit is None or due.limit.grade(made) == "pass":
            return
    kind = Within if is_possible(due, value) else Plausible
    found = (one.judge(about, value) for one in due.criteria if isinstance(one, kind))
    yield from filter(None, found)


def _finite(about: About, values: Sequence[Measured], findings: list[Finding]) -> list[Measured]:
    """The values that are finite and in the due unit; adds a finding for each other one."""
    finite: list[Measured] = []
    for body in values:
        if body.unit != about.unit:
            told = {"unit": body.unit, "due": about.unit}
            findings.append(
                about.finding(
                    "error",
                    english("wrong_unit", "{measurement} came in {unit}, not in {due}"),
                    told,
                )
            )
        elif body.value is None or not math.isfinite(body.value):
            findings.append(
                about.finding(
                    "error",
                    english(
                        "not_finite", "{measurement} on {component} is no finite number[: {why}]"
                    ),
                    known(why=body.note or None),
                )
            )
        else:
            finite.append(body)
    return finite


def _worst_of(due: Due, finite: Sequence[Measured]) -> Measured | None:
    """The value furthest outside its limit, or nearest to leaving it.

    Without a limit it is the worse value by `due.worse`, or else the lowest.
    """

    def trouble(body: Measured) -> float:
        assert body.value is not None
        if due.limit is None:
            return body.value if due.worse == "higher" else -body.value
        low, high = due.limit.low, due.limit.high
        below = low - body.value if low is not None else -math.inf
        return max(below, body.value - high if high is not None else -math.inf)

    return max(finite, key=trouble, default=None)


def _may_excuse(waiver: Waiver, check: str, due: Due) -> bool:
    """Whether a waiver names a worst value of this measurement."""
    named = waiver.measurement is not None and waiver.worst is not None
    return named and due.waivable and covers(waiver, check, due)


def covers(waiver: Waiver, check: str, due: Due) -> bool:
    """Whether a waiver covers this measurement on this component.

    A waiver of a skip covers every measurement of the checks that it names.
    """
    pattern = waiver.component
    if pattern is not None and not due.component.matches(pattern):
        return False
    return (
        matches_patterns(check, [waiver.skip])
        if waiver.skip is not None
        else waiver.measurement == due.measurement
    )


def _unmeasured(
    due: Due, about: About, skips: Sequence[Skipped], waivers: Sequence[Waiver]
) -> Judgement:
    """Judge a measurement without a value by the skip that left it out; without one it is an error.

    Of several skips one that no waiver covers counts.
    """
    own = [
        body
        for body in skips
        if body.measurement in (None, due.measurement) and body.component in (None, due.component)
    ]
    body = next((one for one in own if not _may_be_waived(one)), own[0] if own else None)
    if body is None:
        error = replace(
            about.finding(
                "error",
                english("not_measured", "{measurement} on {component} was not measured"),
                NO_VALUES,
            ),
            unmeasured=True,
        )
        return Judgement(due, None, None, None, (error,))
    for waiver in waivers if _may_be_waived(body) else ():
        named = (about.check, body.follows or about.check)
        if waiver.skip is not None and any(covers(waiver, one, due) for one in named):
            why = None if body.why is None else body.why.value
            values = known(reason=body.reason, waived=waiver.reason, why=why)
            waived = about.finding(
                "waived",
                english(
                    "skip_waived",
                    "{measurement} on {component} was not measured: {reason}; waived: {waived}",
                ),
                values,
            )
            return Judgement(
                due, None, None, None, (waived,), skipped=True, waived=True, unmeasured=body.why
            )
    kind: FindingKind = "error" if body.why is Unmeasured.NO_ANSWER else "skip"
    code = (
        english("skipped", "{measurement} on {component} was not measured: {reason}")
        if body.why is None
        else body.why.value
    )
    found = about.finding(kind, code, {"reason": body.reason})
    return Judgement(due, None, None, None, (found,), unmeasured=body.why)


def _may_be_waived(skip: Skipped) -> bool:
    """Whether a waiver may cover a skip; an older rigproof did not say why it skipped."""
    return skip.why is None or skip.why.waivable


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
