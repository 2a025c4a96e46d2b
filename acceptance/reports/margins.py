"""Margins: how far each figure of a run in progress is from its limit.

It decides nothing: the fold judges. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from acceptance.core.evidence import Sample
from acceptance.core.language import Language
from acceptance.core.limit import Grade, Limit, number
from acceptance.core.parts import CPU, Component
from acceptance.core.plan import Due, Plan
from acceptance.core.record import CheckStarted, Entry, Measured
from acceptance.expect import sensor_range
from acceptance.reports.text import Glyphs, one_line
from acceptance.wording.words import quantity

# Checks whose figures are shown: the last ones that measured something with a limit.
LAST = 3
# What checks after the load will measure of the samples: the reading, and which of all samples.
WATCHED: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "gpu_temperature_margin": ("temperature_margin_c", min),
    "gpu_temperature": ("temperature_c", max),
    "gpu_memory_temperature": ("memory_temperature_c", max),
    "gpu_power": ("power_w", max),
    "cpu_temperature": ("cpu_temperature_c", max),
}
_STYLES: dict[Grade, str] = {"pass": "", "warn": "yellow", "fail": "bold red"}
_DEGREES = "degC"
_COUNTED = frozenset({"count", "GiB"})


@dataclass(frozen=True, slots=True)
class Margin:
    """A figure and the nearest bound of its limit; of several components the worst.

    `above` says on which side of the bound it is. `distance` is how far from it: as a share of the
    bound, or in degrees; negative where the limit is not kept. `alone` means that one component
    owes the measurement, which need not be named.
    """

    measurement: str
    component: Component
    value: float
    unit: str
    bound: float
    above: bool
    distance: float
    grade: Grade
    alone: bool

    @property
    def rank(self) -> float:
        """The smaller, the nearer to its limit; a degree counts as a hundredth."""
        return self.distance / 100.0 if self.unit == _DEGREES else self.distance


def margin(due: Due, value: float, *, alone: bool) -> Margin | None:
    """The margin of a value; None where it has no meaning.

    That is without a limit, at a bound of 0 that is kept, and at a figure that is counted, that is
    a size of memory, or that is its bound itself: it has the one value that it may have, such as
    the lanes of a link.
    """
    if (limit := due.limit) is None:
        return None
    found = min(_distances(limit, value), default=None)
    grade = limit.grade(value)
    if found is None or (grade != "fail" and (due.unit in _COUNTED or found[0] == 0.0)):
        return None
    distance, bound = found
    return Margin(
        due.measurement,
        due.component,
        value,
        due.unit,
        bound,
        value > bound,
        distance,
        grade,
        alone,
    )


def _distances(limit: Limit, value: float) -> Iterator[tuple[float, float]]:
    """The distance to each bound, with the bound."""
    for bound, away in ((limit.low, 1.0), (limit.high, -1.0)):
        if bound is not None:
            apart = away * (value - bound)
            if limit.unit == _DEGREES:
                yield apart, bound
            elif bound:
                yield apart / abs(bound), bound
            elif apart < 0.0:
                yield float("-inf"), bound  # any value beyond 0 is no share of it


class Margins:
    """The margins of a run, updated record by record."""

    def __init__(self, plan: Plan) -> None:
        self._due = {
            (check.id, due.measurement, due.component): due
            for check in plan.checks
            for due in check.due
        }
        self._owners: dict[tuple[str, str], int] = {}
        for check, measurement, _ in self._due:
            self._owners[check, measurement] = self._owners.get((check, measurement), 0) + 1
        self._watched = {
            (due.measurement, due.component): (check, due)
            for (check, _, _), due in self._due.items()
            if due.measurement in WATCHED and due.limit is not None
        }
        self._checks: dict[str, dict[tuple[str, Component], Margin]] = {}  # the last ones, in order
        self._extremes: dict[tuple[str, Component], float] = {}

    def entry(self, entry: Entry) -> None:
        """Process one record."""
        body = entry.body
        if isinstance(body, CheckStarted):
            self._checks.pop(body.check, None)  # a repeat counts from its beginning
        elif isinstance(body, Measured) and body.value is not None:
            due = self._due.get((body.check, body.measurement, body.component))
            if due is not None and due.unit == body.unit:
                self._put(body.check, due, body.value)
        elif isinstance(body, Sample):
            self._sample(body.component or CPU, body)

    def worst(self) -> list[Margin]:
        """The margin of each figure of the last checks and of the watch, the nearest first."""
        found: dict[str, Margin] = {}
        for one in self._all():
            other = found.get(one.measurement)
            if other is None or one.rank < other.rank:
                found[one.measurement] = one
        return sorted(found.values(), key=lambda one: (one.rank, one.measurement))

    def _all(self) -> Iterator[Margin]:
        for (name, component), value in self._extremes.items():
            check, due = self._watched[name, component]
            if one := margin(due, value, alone=self._owners[check, name] == 1):
                yield one
        for figures in self._checks.values():
            yield from figures.values()

    def _put(self, check: str, due: Due, value: float) -> None:
        alone = self._owners[check, due.measurement] == 1
        if one := margin(due, value, alone=alone):
            self._checks.setdefault(check, {})[due.measurement, due.component] = one
            while len(self._checks) > LAST:
                self._checks.pop(next(iter(self._checks)))

    def _sample(self, component: Component, body: Sample) -> None:
        for name, (reading, extreme) in WATCHED.items():
            if (name, component) not in self._watched:
                continue
            for values in (body.values, body.low, body.high):
                value = _reading(values, reading)
                if value is not None:
                    before = self._extremes.get((name, component), value)
                    self._extremes[name, component] = extreme(before, value)


def _reading(values: Mapping[str, float] | None, name: str) -> float | None:
    """A reading, unless no sensor can give it."""
    value = None if values is None else values.get(name)
    if value is None or sensor_range.outside(sensor_range.ranges(), name, value):
        return None
    return value


def line(one: Margin, language: Language, signs: Glyphs) -> Text:
    """A margin in words: `gemm_bf16 664 TFLOP/s, 6 % above its limit`."""
    degrees = one.unit == _DEGREES
    what = one.measurement if one.alone else f"{one.measurement} {one.component}"
    value = f"{one.value:.0f} {signs.degree}" if degrees else quantity(one.value, one.unit)
    values = {"what": one_line(what, 60), "value": one_line(value, 30)}
    if one.unit == "count" or (one.bound == 0.0 and not degrees):
        text = language("{what} {value}, its limit is {limit}", **values, limit=number(one.bound))
    else:
        away = f"{abs(one.distance):.0f} {signs.degree}" if degrees else _percent(one.distance)
        text = (
            language("{what} {value}, {away} above its limit", **values, away=away)
            if one.above
            else language("{what} {value}, {away} below its limit", **values, away=away)
        )
    # Without colours, too, it must be seen on which side of its limit a figure may not be.
    word = f"{language('FAIL')} " if one.grade == "fail" else ""
    return Text(f"{word}{text}", _STYLES[one.grade])


def _percent(share: float) -> str:
    percent = abs(share) * 100.0
    return f"{percent:.0f} %" if percent >= 1.0 else f"{percent:.1f} %"
