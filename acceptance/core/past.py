"""What earlier nights say a value should be, and how it is judged by them. Pure.

It is part of the plan. Values, levels, bounds and deviations are in the measurement's unit. Bounds
are allowed values. Only the bound on the worse side is set; both, if the worse side is unknown.

A value outside on one night is a warning, on two consecutive nights a failure; so are several
drifted nights among the last ones. If it is unknown which side is worse, a change is a warning and
never fails: it may be for the better.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from acceptance.core.message import english

DriftSeverity = Literal["fail", "warn"]
# Step: beyond the variation from night to night. Slope: a level that moved too slowly to show from
# one night to the next. Noise: values scatter more than before. Counter: it grew too fast. Changed:
# a step, with the worse side unknown. Unsteady: a step or slope that the repeat did not show.
DriftKind = Literal["step", "slope", "noise", "counter", "changed", "unsteady"]
# The parts of a Past that have bounds, by field.
Reference = Literal["level", "slope", "first", "few"]
# Why a finding warns or fails. Each is the code of a message, of which `strayed` is a counter's.
DriftReason = Literal[
    "first_night",
    "second_night",
    "strayed",
    "strayed_again",
    "too_few_nights",
    "within_again",
    "worse_side_unknown",
]


class Bounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lowest and the highest allowed value; at least one of them is set."""

    low: float | None = None
    high: float | None = None

    def beyond(self, value: float) -> bool:
        """Whether a value is outside. NaN is, because no comparison with it is true."""
        return not (
            (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        )


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """The level of the last nights.

    It is their median, their number, one deviation from night to night, and the number of
    deviations allowed.
    """

    middle: float
    nights: int
    deviation: float
    factor: float
    bounds: Bounds


class FirstNights(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first nights: their median, their number, and the `day` of the first.

    `baseline`: the first of them is the run that accepted the machine. `moved`: the median of the
    last nights lies beyond these bounds.
    """

    middle: float
    nights: int
    day: float
    bounds: Bounds
    baseline: bool = False
    moved: bool = False


class Slope(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slow fall or rise over some nights.

    `first` and `last` are the levels of their first and last third, `days` the days between the
    two.
    """

    first: float
    last: float
    days: float
    nights: int
    bounds: Bounds


class NoiseGrowth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Noise that has grown.

    `before` is one deviation of the nights before the last ones, `now` that of the last ones,
    `nights` in number.
    """

    before: float
    now: float
    nights: int


class CounterReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """A counter that only grows.

    `stood` is its value `days` before tonight, and `allowed` its allowed growth since. Above `most`
    it fails at once. `repeats` says that two consecutive nights above `allowed` are a failure, and
    so are several of the last.
    """

    stood: float
    days: float
    allowed: float
    basis: str
    most: float | None = None
    repeats: bool = False


class DriftFinding(msgspec.Struct, frozen=True):
    """One finding of drift, in numbers: `acceptance.wording.drift` makes words of them.

    `kind` is its effect on the outcome; `what` is the kind of drift, which selects its causes.
    `value`, and `again` of the repeat, are in `unit`. `beyond` names the parts of the past whose
    bounds were exceeded, that of the last nights first; `grown` is how much a counter grew.
    """

    kind: DriftSeverity
    what: DriftKind
    code: str
    past: Past
    unit: str
    value: float
    again: float | None = None
    beyond: tuple[Reference, ...] = ()
    why: DriftReason | None = None
    grown: float | None = None


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


class Past(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="criterion", tag="past"):
    """The reference of one measurement of one part, from before this run.

    `decides`: the worse side is known; without it nothing fails. `before`: the previous night was
    outside. `off` is how many of the last `off_of` nights, without tonight, were outside or
    unsteady; it fails when tonight makes it `off_fails`. `rebased`: the machine was accepted under
    other circumstances, so that the baseline's value is not used. `few` are nights too few for a
    spread of their own, with the bounds within which two runs may lie: beyond them is a warning.
    """

    decides: bool
    off_fails: int
    off_of: int
    off: int = 0
    before: bool = False
    level: Level | None = None
    first: FirstNights | None = None
    slope: Slope | None = None
    grown: NoiseGrowth | None = None
    counter: CounterReference | None = None
    rebased: bool = False
    few: FirstNights | None = None

    def judge(self, unit: str, value: float, repeated: float | None = None) -> DriftJudgement:
        """Compare a value, and its repeat if there is one, with the reference.

        A value that is not finite fails.
        """
        if not math.isfinite(value):
            found = DriftFinding(
                "fail",
                "step",
                english(
                    "not_finite_for_past",
                    "{measurement} on {component} is no finite number that could be compared with "
                    "its past",
                ),
                self,
                unit,
                value,
            )
            return DriftJudgement((found,), outside=True)
        if self.counter is not None:
            return _judge_counter(unit, self, self.counter, value)
        # Noise by itself proves no loss, so it never fails.
        noise = DriftFinding(
            "warn",
            "noise",
            english(
                "noise_grew",
                "{measurement} on {component}: its noise has grown: one deviation of the last "
                "{nights} is {now}, and was {before} before; basis: {basis}",
            ),
            self,
            unit,
            value,
        )
        more = () if self.grown is None else (noise,)
        beyond = self._beyond(value)
        if not beyond:
            return DriftJudgement((*_few(unit, self, value), *more))
        stayed = repeated is None or not math.isfinite(repeated) or bool(self._beyond(repeated))
        kind, why = _weight(self, stayed)
        what = _what(self, beyond[0], stayed)
        found = DriftFinding(
            kind,
            what,
            english(
                "drifted",
                "{measurement} on {component}: measured {measured}[, {again} at the repeat]: "
                "{how}; {why}; basis: {basis}",
            ),
            self,
            unit,
            value,
            repeated,
            beyond,
            why,
        )
        return DriftJudgement((found, *more), stayed, not stayed, repeated is None)

    def _beyond(self, value: float) -> tuple[Reference, ...]:
        """Every part whose bounds the value exceeds, that of the last nights first."""
        parts: dict[Reference, Level | Slope | FirstNights | None] = {
            "level": self.level,
            "slope": self.slope,
            "first": self.first,
        }
        return tuple(
            name for name, one in parts.items() if one is not None and one.bounds.beyond(value)
        )


def _what(past: Past, first: Reference, stayed: bool) -> DriftKind:
    if not past.decides:
        return "changed"
    if not stayed:
        return "unsteady"
    moved = first == "first" and past.first is not None and past.first.moved
    return "slope" if first == "slope" or moved else "step"


def _weight(past: Past, stayed: bool) -> tuple[DriftSeverity, DriftReason]:
    """The severity of a value outside or unsteady, given the nights before, and its reason."""
    if not past.decides:
        return "warn", "worse_side_unknown"
    if stayed and past.before:
        return "fail", "second_night"
    if past.off + 1 >= past.off_fails:
        return "fail", english(
            "strayed_again", "{nights} of the last {of} strayed, this one included"
        )
    return "warn", english(
        "first_night", "the first night: another one like it, and it fails"
    ) if stayed else english("within_again", "the repeat was within")


def _few(unit: str, past: Past, value: float) -> tuple[DriftFinding, ...]:
    """A warning where two runs would not be called the same; by chance alone it never fails."""
    if past.few is None or not past.few.bounds.beyond(value):
        return ()
    what: DriftKind = "step" if past.decides else "changed"
    why: DriftReason = (
        english("too_few_nights", "too few nights came before for more than a warning")
        if past.decides
        else english("worse_side_unknown", "nothing tells whether this is for the worse")
    )
    return (DriftFinding("warn", what, "drifted", past, unit, value, beyond=("few",), why=why),)


def _judge_counter(
    unit: str, past: Past, counter: CounterReference, value: float
) -> DriftJudgement:
    # A counter below its former value was reset: its present value is the growth since.
    back = value < counter.stood
    grown = value if back else value - counter.stood
    if grown <= counter.allowed:
        return DriftJudgement()
    at_once = counter.most is not None and grown > counter.most
    again = counter.repeats and (past.before or past.off + 1 >= past.off_fails)
    strayed: DriftReason = (
        english("second_night", "the second night running")
        if past.before
        else english("strayed", "{nights} of the last {of} strayed")
    )
    kind: DriftSeverity = "fail" if at_once or again else "warn"
    code = (
        english(
            "counter_set_back",
            "{measurement} on {component}: measured {measured}: grew by {grown} within {days}, "
            "set back from {stood}, allowed {allowed}[, fails above {most}][; {why}]; basis: "
            "{basis}",
        )
        if back
        else english(
            "counter_grew",
            "{measurement} on {component}: measured {measured}: grew by {grown} within {days}, "
            "from {stood}, allowed {allowed}[, fails above {most}][; {why}]; basis: {basis}",
        )
    )
    why = strayed if again else None
    found = DriftFinding(kind, "counter", code, past, unit, value, why=why, grown=grown)
    return DriftJudgement((found,), outside=True)
