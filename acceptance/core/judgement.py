"""Judge one due measurement against its limit, its waivers and its past."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence

import msgspec

from acceptance.core.collection import matches_patterns
from acceptance.core.finding import DRIFT, Finding, FindingKind
from acceptance.core.limit import Limit, number, quantity
from acceptance.core.plan import Due
from acceptance.core.record import Measured, Skipped
from acceptance.core.waiver import Waiver
from acceptance.history import drift
from acceptance.history.drift import DriftJudgement

NOTE_INLINE = 100  # a longer note would hide the value and its limit


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
) -> Judgement:
    """Judge one due measurement from everything that the check measured and skipped.

    `repeated` are the values of the repeat. Limit and ceiling apply to every value. The earlier
    nights are compared with the worst value of the first measurement, and with the worst of the
    repeat.
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
    for body in (*first, *second):
        assert body.value is not None
        for finding in (
            _against_ceiling(due, check, body.value),
            _against_limit(due, check, body.value, body.note, waivers),
        ):
            findings += [finding] if finding else []
    worst, later = _worst_of(due, first), _worst_of(due, second)
    value, other = (one.value if one else None for one in (worst, later))
    drifted = None
    if due.past is not None and value is not None:
        drifted = drift.judge(due.measurement, due.component, due.unit, due.past, value, other)
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


def _against_ceiling(due: Due, check: str, value: float) -> Finding | None:
    """An error where a value is above what is possible; no waiver excuses it."""
    if due.ceiling is None or due.ceiling.grade(value) != "fail":
        return None
    assert due.ceiling.high is not None
    measured = f"{due.measurement} on {due.component}: measured {_with_unit(value, due.ceiling)}"
    possible = quantity(due.ceiling.high, due.unit)
    text = (
        f"{measured}, and no more than {possible} is possible: it proves nothing, measure it "
        "again with another tool"
    )
    return _finding("error", check, due, f"{text}; basis: {due.ceiling.basis}")


def _with_unit(value: float, limit: Limit) -> str:
    """A value with its unit; in full where rounding would move it within the limit."""
    shown = quantity(value, limit.unit)
    return (
        shown
        if limit.grade(float(number(value))) == limit.grade(value)
        else shown.replace(number(value), repr(value))
    )


def _against_limit(
    due: Due, check: str, value: float, note: str | None, waivers: Sequence[Waiver]
) -> Finding | None:
    if due.limit is None:
        return None
    grade = due.limit.grade(value)
    if grade == "pass":
        return None
    brief = bool(note) and "\n" not in str(note) and len(str(note)) <= NOTE_INLINE
    about, note = (f" ({note})", None) if brief else ("", note or None)
    measured = (
        f"{due.measurement} on {due.component}: measured "
        f"{_with_unit(value, due.limit)}{about}, "
        f"limit {due.limit}"
    )
    text = f"{measured}; basis: {due.limit.basis}"
    if grade == "warn":
        return _finding(
            "warn", check, due, f"{text} (within the limit, outside what is usual)", note=note
        )
    exceeded = ""
    for waiver in waivers:
        if (
            waiver.measurement is None
            or waiver.worst is None
            or not due.waivable
            or not covers(waiver, check, due)
        ):
            continue
        bound = quantity(waiver.worst, due.unit)
        below = due.limit.low is not None and value < due.limit.low
        if value >= waiver.worst if below else value <= waiver.worst:
            words = f"{text}; waived: {waiver.reason} (worst accepted {bound})"
            return _finding("waived", check, due, words, note=note)
        exceeded = f"; worse than the waiver accepts ({bound})"
    return _finding("fail", check, due, f"{text}{exceeded}", note=note)


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
