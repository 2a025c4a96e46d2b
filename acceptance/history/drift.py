"""Compare tonight's value with the reference: steps, slopes, grown noise, counters. Pure.

A value outside on one night is a warning, on two consecutive nights a failure; so are several
drifted nights among the last ones. If it is unknown which side is worse, a change is a warning and
never fails: it may be for the better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from acceptance.core.limit import number, quantity
from acceptance.history.reference import (
    CounterReference,
    Reference,
    ReferenceBounds,
    basis,
    describe_first_nights,
    nights,
)

DriftSeverity = Literal["fail", "warn"]
# Step: beyond the variation from night to night. Slope: a level that moved too slowly to show from
# one night to the next. Noise: values scatter more than before. Counter: it grew too fast. Changed:
# a step, with the worse side unknown. Unsteady: a step or slope that the repeat did not show.
DriftKind = Literal["step", "slope", "noise", "counter", "changed", "unsteady"]


class DriftFinding(msgspec.Struct, frozen=True):
    """One finding of drift, as one line.

    `kind` is its effect on the outcome; `what` is the kind of drift, which selects its causes.
    """

    kind: DriftSeverity
    what: DriftKind
    text: str


class DriftJudgement(msgspec.Struct, frozen=True):
    """Tonight's value compared with its reference.

    `outside`: beyond a bound, in the repeat too if there was one. `unsteady`: beyond a bound at
    first, and within it in the repeat. `look_again`: not repeated yet, and a repeat could show
    whether it was chance.
    """

    findings: tuple[DriftFinding, ...] = ()
    outside: bool = False
    unsteady: bool = False
    look_again: bool = False


class _Crossed(NamedTuple):
    what: DriftKind
    words: str


def judge(
    measurement: str,
    component: str,
    unit: str,
    past: Reference,
    value: float,
    repeated: float | None = None,
) -> DriftJudgement:
    """Compare a value, and its repeat if there is one, with the reference.

    A value that is not finite fails.
    """
    where = f"{measurement} on {component}"
    if not math.isfinite(value):
        words = f"{where} is no finite number that could be held against its past"
        return DriftJudgement((DriftFinding("fail", "step", words),), outside=True)
    if past.counter is not None:
        return _judge_counter(where, unit, past, past.counter, value)
    noise = _noise(where, unit, past)
    crossed = list(_crossings(past, unit, value))
    if not crossed:
        return DriftJudgement(noise)
    stayed = (
        repeated is None or not math.isfinite(repeated) or any(_crossings(past, unit, repeated))
    )
    kind, why = _weight(past, stayed)
    second = "" if repeated is None else f", {quantity(repeated, unit)} at the second look"
    words = "; ".join(one.words for one in crossed)
    text = (
        f"{where}: measured {quantity(value, unit)}{second}: {words}; {why}; basis: "
        f"{basis(past, unit)}"
    )
    return DriftJudgement(
        (DriftFinding(kind, _what(past, crossed[0], stayed), text), *noise),
        stayed,
        not stayed,
        repeated is None,
    )


def _what(past: Reference, crossed: _Crossed, stayed: bool) -> DriftKind:
    if not past.decides:
        return "changed"
    return crossed.what if stayed else "unsteady"


def _crossings(past: Reference, unit: str, value: float) -> Iterator[_Crossed]:
    """Every bound that the value exceeds, that of the last nights first."""
    if past.level is not None and past.level.bounds.beyond(value):
        level = past.level
        before = f"the median of {nights(level.nights)} before, {quantity(level.middle, unit)}"
        yield _Crossed("step", _deviation_text(value, level.middle, before, level.bounds, unit))
    if past.slope is not None and past.slope.bounds.beyond(value):
        slope = past.slope
        way = (
            f"from {quantity(slope.first, unit)} to {quantity(slope.last, unit)} within "
            f"{slope.days:.0f} days"
        )
        text = f"its level went {way} ({nights(slope.nights)}), bound {slope.bounds.words(unit)}"
        yield _Crossed("slope", text)
    if past.first is not None and past.first.bounds.beyond(value):
        first = past.first
        before = f"the {describe_first_nights(first)}, {quantity(first.middle, unit)}"
        yield _Crossed(
            "slope" if first.moved else "step",
            _deviation_text(value, first.middle, before, first.bounds, unit),
        )


def _deviation_text(
    value: float, middle: float, before: str, bounds: ReferenceBounds, unit: str
) -> str:
    """The distance of a value from its former level, in words."""
    far = abs(value - middle)
    share = middle and unit not in ("count", "degC", "s")
    much = f"{number(round(100 * far / abs(middle), 1))} %" if share else quantity(far, unit)
    return f"{much} {'below' if value < middle else 'above'} {before}, bound {bounds.words(unit)}"


def _weight(past: Reference, stayed: bool) -> tuple[DriftSeverity, str]:
    """The severity of a value outside or unsteady, given the nights before, and its reason."""
    if not past.decides:
        return "warn", "nothing tells whether this is for the worse"
    if stayed and past.before:
        return "fail", "the second night running"
    off = past.off + 1
    if off >= past.off_fails:
        return "fail", f"{nights(off)} of the last {past.off_of} strayed, this one included"
    if not stayed:
        return "warn", "the second look was within"
    return "warn", "the first night: another one like it, and it fails"


def _noise(where: str, unit: str, past: Reference) -> tuple[DriftFinding, ...]:
    """A warning if the noise has grown: by itself that proves no loss, so it never fails."""
    grown = past.grown
    if grown is None:
        return ()
    now, before = quantity(grown.now, unit), quantity(grown.before, unit)
    text = f"one deviation of the last {nights(grown.nights)} is {now}, and was {before} before"
    return (
        DriftFinding(
            "warn", "noise", f"{where}: its noise has grown: {text}; basis: {basis(past, unit)}"
        ),
    )


def _judge_counter(
    where: str, unit: str, past: Reference, counter: CounterReference, value: float
) -> DriftJudgement:
    # A counter below its former value was reset: its present value is the growth since.
    back = value < counter.stood
    grown = value if back else value - counter.stood
    if grown <= counter.allowed:
        return DriftJudgement()
    at_once = counter.most is not None and grown > counter.most
    off = past.off + 1
    again = counter.repeats and (past.before or off >= past.off_fails)
    stood = quantity(counter.stood, unit)
    words = (
        f"grew by {quantity(grown, unit)} within {_days(counter.days)}, "
        f"{f'set back from {stood}' if back else f'from {stood}'}"
    )
    bounds = f"allowed {quantity(counter.allowed, unit)}"
    if counter.most is not None:
        bounds += f", fails above {quantity(counter.most, unit)}"
    strayed = (
        "the second night running"
        if past.before
        else f"{nights(off)} of the last {past.off_of} strayed"
    )
    running = f"; {strayed}" if again else ""
    text = (
        f"{where}: measured {quantity(value, unit)}: {words}, {bounds}{running}; basis: "
        f"{basis(past, unit)}"
    )
    return DriftJudgement(
        (DriftFinding("fail" if at_once or again else "warn", "counter", text),), outside=True
    )


def _days(days: float) -> str:
    text = number(round(days, 1))
    return "1 day" if text == "1" else f"{text} days"
