"""One due measurement held against what the journal says of it, the limit, and the waivers."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from acceptance.judge.machine import Waiver
from acceptance.judge.measurement import quantity
from acceptance.judge.plan import Due, selected
from acceptance.judge.record import Measured, Skipped

Kind = Literal["fail", "error", "skip", "warn", "waived"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that the reader must know, as one line; `kind` says what it does to the outcome (warn and waived do nothing)."""

    kind: Kind
    check: str
    text: str
    measurement: str | None = None
    component: str | None = None
    action: str | None = None
    quote: str | None = None
    unmeasured: bool = False  # an error only because the value is missing: a better reason replaces it


class Judged(msgspec.Struct, frozen=True):
    """A due measurement after judgement. `value` is the worst of what was measured, None when nothing finite was."""

    due: Due
    value: float | None
    serial: str | None
    note: str | None
    findings: tuple[Finding, ...]
    skipped: bool = False  # not measured, and a waiver says that this is known
    waived: bool = False


def _finding(kind: Kind, check: str, due: Due, text: str, *, unmeasured: bool = False) -> Finding:
    return Finding(kind, check, text, due.measurement, due.component, unmeasured=unmeasured)


def judge_due(
    due: Due,
    check: str,
    measured: Sequence[Measured],
    skips: Sequence[Skipped],
    waivers: Sequence[Waiver],
    used: set[int],
) -> Judged:
    """Judge one due measurement. `used` collects the index of every waiver that was needed."""
    values = [body for body in measured if (body.measurement, body.component) == (due.measurement, due.component)]
    if not values:
        return _unmeasured(due, check, skips, waivers, used)
    findings: list[Finding] = []
    finite: list[Measured] = []
    for body in values:
        if body.unit != due.unit:
            findings.append(_finding("error", check, due, f"{due.measurement} came in {body.unit}, not in {due.unit}"))
        elif body.value is None or not math.isfinite(body.value):
            told = f": {body.note}" if body.note else ""
            findings.append(
                _finding("error", check, due, f"{due.measurement} on {due.component} is no finite number{told}")
            )
        else:
            finite.append(body)
    waived = False
    for body in finite:
        assert body.value is not None
        finding, by_waiver = _against_limit(due, check, body.value, body.note, waivers, used)
        waived = waived or by_waiver
        findings += [finding] if finding else []
    worst = _worst_of(due, finite)
    return Judged(
        due,
        worst.value if worst else None,
        worst.serial if worst else None,
        worst.note if worst else None,
        tuple(findings),
        waived=waived,
    )


def _worst_of(due: Due, finite: Sequence[Measured]) -> Measured | None:
    """The value furthest into trouble: the lowest where there is a floor, else the highest."""

    def value(body: Measured) -> float:
        return body.value if body.value is not None else math.nan

    floor = due.limit is None or due.limit.low is not None
    return (min if floor else max)(finite, key=value, default=None)


def _against_limit(
    due: Due, check: str, value: float, note: str | None, waivers: Sequence[Waiver], used: set[int]
) -> tuple[Finding | None, bool]:
    if due.limit is None:
        return None, False
    grade = due.limit.grade(value)
    if grade == "pass":
        return None, False
    about = f" ({note})" if note else ""
    measured = f"{due.measurement} on {due.component}: measured {quantity(value, due.unit)}{about}, limit {due.limit}"
    text = f"{measured}; basis: {due.limit.basis}"
    if grade == "warn":
        return _finding("warn", check, due, f"{text} (within the limit, outside what is usual)"), False
    for index, waiver in enumerate(waivers):
        if waiver.measurement == due.measurement and due.waivable and _covers(waiver, due.component):
            used.add(index)
            if waiver.worst is not None and _within(due, value, waiver.worst):
                return _finding(
                    "waived",
                    check,
                    due,
                    f"{text}; waived: {waiver.reason} (worst accepted {quantity(waiver.worst, due.unit)})",
                ), True
            return _finding(
                "fail", check, due, f"{text}; worse than the waiver accepts ({quantity(waiver.worst or 0.0, due.unit)})"
            ), False
    return _finding("fail", check, due, text), False


def _covers(waiver: Waiver, component: str) -> bool:
    return waiver.component is None or fnmatch.fnmatchcase(component, waiver.component)


def _within(due: Due, value: float, worst: float) -> bool:
    """Whether a value outside its limit is no worse than what a waiver accepts, on the side on which it fails."""
    assert due.limit is not None
    if due.limit.low is not None and value < due.limit.low:
        return value >= worst
    return value <= worst


def _unmeasured(due: Due, check: str, skips: Sequence[Skipped], waivers: Sequence[Waiver], used: set[int]) -> Judged:
    for body in skips:
        if body.measurement in (None, due.measurement) and body.component in (None, due.component):
            for index, waiver in enumerate(waivers):
                if waiver.skip is not None and selected(check, [waiver.skip]) and _covers(waiver, due.component):
                    used.add(index)
                    text = (
                        f"{due.measurement} on {due.component} was not measured: {body.reason}; waived: {waiver.reason}"
                    )
                    return Judged(
                        due, None, None, None, (_finding("waived", check, due, text),), skipped=True, waived=True
                    )
            text = f"{due.measurement} on {due.component} was not measured: {body.reason}"
            return Judged(due, None, None, None, (_finding("skip", check, due, text),))
    text = f"{due.measurement} on {due.component} was not measured"
    return Judged(due, None, None, None, (_finding("error", check, due, text, unmeasured=True),))
