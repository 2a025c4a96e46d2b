"""Judge one due measurement against its criteria."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping, Sequence

import msgspec

from acceptance.core.collection import matches_patterns
from acceptance.core.criterion import About, Plausible, Siblings, Within
from acceptance.core.finding import DRIFT, Finding, FindingKind
from acceptance.core.past import DriftJudgement
from acceptance.core.plan import Due
from acceptance.core.record import Measured, Skipped
from acceptance.core.waiver import Waiver


class Judgement(msgspec.Struct, frozen=True):
    """A due measurement after judgement.

    `value` is the worst measured value, None when none was finite. `waived` means that a waiver was
    needed; `skipped`, that it was needed because nothing was measured. `again` is the worst value
    of the repeat, where there was one. `drift` compares the value with the earlier nights, where
    the plan holds any.
    """

    due: Due
    value: float | None
    serial: str | None
    note: str | None
    findings: tuple[Finding, ...]
    skipped: bool = False
    waived: bool = False
    again: float | None = None
    drift: DriftJudgement | None = None


def _finding(
    kind: FindingKind,
    check: str,
    due: Due,
    text: str,
    *,
    note: str | None = None,
    unmeasured: bool = False,
) -> Finding:
    return Finding(
        kind, check, text, due.measurement, due.component, note=note, unmeasured=unmeasured
    )


def judge_due(
    due: Due,
    check: str,
    measured: Sequence[Measured],
    skips: Sequence[Skipped],
    waivers: Sequence[Waiver],
    repeated: Sequence[Measured] = (),
    peers: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
) -> Judgement:
    """Judge one due measurement from everything that the check measured and skipped.

    `repeated` are the values of the repeat. Limit and ceiling apply to every value. The earlier
    nights are compared with the worst value of the first measurement, and with the worst of the
    repeat.

    `peers` are the values, by component, of what a ratio was made of, at first and in the repeat;
    without them a ratio is taken as it was recorded.
    """
    values = [
        body
        for body in measured
        if (body.measurement, body.component) == (due.measurement, due.component)
    ]
    if not values:
        return _unmeasured(due, check, skips, waivers)
    findings: list[Finding] = []
    first = _finite(due, check, values, findings)
    second = _finite(
        due,
        check,
        [
            body
            for body in repeated
            if (body.measurement, body.component) == (due.measurement, due.component)
        ],
        findings,
    )
    about = About(
        check,
        due.measurement,
        due.component,
        due.unit,
        excuses=tuple(one for one in waivers if _may_excuse(one, check, due)),
    )
    for body in (*first, *second):
        assert body.value is not None
        for criterion in due.criteria:
            if isinstance(criterion, Plausible | Within):
                found = criterion.judge(about._replace(note=body.note), body.value)
                findings += [found] if found else []
    for criterion in due.criteria:
        if isinstance(criterion, Siblings) and peers is not None:
            for bodies, made_of in zip((first, second), peers, strict=True):
                for body in bodies:
                    assert body.value is not None
                    found = criterion.judge(about, body.value, made_of)
                    findings += [found] if found else []
    worst, later = _worst_of(due, first), _worst_of(due, second)
    value, other = (one.value if one else None for one in (worst, later))
    drifted = None
    if due.past is not None and value is not None:
        drifted = due.past.judge(about.where, due.unit, value, other)
        findings += [
            Finding(
                found.kind,
                check,
                found.text,
                due.measurement,
                due.component,
                event=f"{DRIFT}.{found.what}",
            )
            for found in drifted.findings
        ]
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


def _finite(
    due: Due, check: str, values: Sequence[Measured], findings: list[Finding]
) -> list[Measured]:
    """The values that are finite and in the due unit; adds a finding for each other one."""
    finite: list[Measured] = []
    for body in values:
        if body.unit != due.unit:
            findings.append(
                _finding(
                    "error", check, due, f"{due.measurement} came in {body.unit}, not in {due.unit}"
                )
            )
        elif body.value is None or not math.isfinite(body.value):
            text = f": {body.note}" if body.note else ""
            findings.append(
                _finding(
                    "error",
                    check,
                    due,
                    f"{due.measurement} on {due.component} is no finite number{text}",
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
    if (
        pattern is not None
        and pattern != due.component
        and not fnmatch.fnmatchcase(due.component, pattern)
    ):
        return False
    if waiver.skip is not None:
        return matches_patterns(check, [waiver.skip])
    return waiver.measurement == due.measurement


def _unmeasured(
    due: Due, check: str, skips: Sequence[Skipped], waivers: Sequence[Waiver]
) -> Judgement:
    for body in skips:
        if body.measurement in (None, due.measurement) and body.component in (None, due.component):
            text = f"{due.measurement} on {due.component} was not measured: {body.reason}"
            for waiver in waivers:
                if waiver.skip is not None and covers(waiver, check, due):
                    known = _finding("waived", check, due, f"{text}; waived: {waiver.reason}")
                    return Judgement(due, None, None, None, (known,), skipped=True, waived=True)
            return Judgement(due, None, None, None, (_finding("skip", check, due, text),))
    text = f"{due.measurement} on {due.component} was not measured"
    return Judgement(due, None, None, None, (_finding("error", check, due, text, unmeasured=True),))
