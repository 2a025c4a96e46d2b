"""The telemetry of one GPU over a run, reduced to the values that are judged. Pure.

In the first hour every sample is kept; afterwards a sample covers some seconds (`span_s`) with
mean, minimum and maximum. Each reduction documents how it uses both. Values outside a sensor's
range (`sensor_range`) are left out and reported: they were not measured. A reading that is missing
from, or left out of, too many samples of a check was not measured at all (`thresholds.toml`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from acceptance.core.evidence import Refused, Sample
from acceptance.core.message import Message, english, known, plural
from acceptance.core.parts import Component
from acceptance.core.record import Entry
from acceptance.expect import sensor_range
from acceptance.journal.packed_samples import Packer
from acceptance.machine.thresholds import Range, thresholds
from acceptance.wording.errors import WordedError

# A link trains up when work begins: its state in the first seconds of full use is no fault.
SETTLE_S = 2.0
# Utilisation is the driver's average over up to a second: for that long it may still show full use
# that is over, and a link that is down again.
FALL_S = 1.0
# Samples further apart than this say nothing about the time between them.
GAP_S = 5.0
# A reading has vanished when it is missing from the samples of this many seconds at the end.
# Readings are taken five times a second, or once.
TAIL_S, SLOW_TAIL_S = 1.2, 2.5
# The time from one sample to the next of these readings, in seconds.
PERIOD_S, SLOW_PERIOD_S = 0.2, 1.0
# Advice where something is not known.
DMESG_ADVICE = Message(english("look_for_nvrm", "look for NVRM lines in `dmesg`, and run again"))
BURN_ADVICE = Message(
    english("burn_longer", "run a profile with a burn, or a longer one (BURN=120)")
)
# The least time that counts for a flag that was up in a sample, even in the last one.
MOMENT_S = 0.001


class NotMeasured(WordedError, ValueError):
    """A reading of a GPU does not give what is asked of it."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """Readings at one moment (`span_s` 0), or their means over the `span_s` seconds before it.

    `low` and `high` are the extremes of that span; a reading without them was constant. `partly`
    are the readings that are left out although some value of that span was in their range, with
    the share of the span that is lost.
    """

    boot_s: float
    values: Mapping[str, float] = field(hash=False)
    span_s: float = 0.0
    low: Mapping[str, float] | None = field(default=None, hash=False)
    high: Mapping[str, float] | None = field(default=None, hash=False)
    partly: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def began_s(self) -> float:
        """The beginning of its span, in seconds since boot."""
        return self.boot_s - self.span_s

    def least(self, name: str) -> float:
        """The smallest known value of this point.

        Raises KeyError where the reading is absent.
        """
        return self.low[name] if self.low is not None and name in self.low else self.values[name]

    def most(self, name: str) -> float:
        """The largest known value of this point.

        Raises KeyError where the reading is absent.
        """
        return self.high[name] if self.high is not None and name in self.high else self.values[name]

    def busy(self) -> bool:
        """Whether the GPU was in full use for the whole span of this point."""
        full = thresholds().work.full_use
        return "utilisation" in self.values and self.least("utilisation") >= full


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """Samples of one reading outside its sensor's range.

    `count` of them, from `least` to `most`; the range is from `low` to `high`.
    """

    count: int
    least: float
    most: float
    low: float
    high: float

    @property
    def message(self) -> Message:
        """How many there are, and of which values."""
        values = known(
            n=self.count,
            least=f"{self.least:g}",
            most=f"{self.most:g}" if self.most != self.least else None,
            low=f"{self.low:g}",
            high=f"{self.high:g}",
        )
        return Message(
            plural(
                "samples_outside",
                "{n} sample of {least}[ to {most}], outside {low} to {high}, which no such sensor "
                "can mean",
                "{n} samples of {least}[ to {most}], outside {low} to {high}, which no such "
                "sensor can mean",
            ),
            values,
        )

    def plus(self, value: float) -> OutOfRange:
        """These samples and one more."""
        return OutOfRange(
            self.count + 1, min(self.least, value), max(self.most, value), self.low, self.high
        )


@dataclass(frozen=True, slots=True)
class ThrottleTime:
    """How long a reason held the clocks back, in seconds.

    `lone` are the moments, in seconds since boot, of lone samples at the edge of a load, which do
    not count.
    """

    seconds: float
    lone: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuHistory:
    """Every point of one GPU, in order.

    `outside` holds the samples that were left out as out of range, by reading, `refused` the errors
    of readings that failed to answer. `to_the_end` means
    that the points reach until now, so that a reading which is missing from the last of them has
    vanished. `checks` are those that loaded the machine meanwhile, as (check, begin, end); without
    any the points are of one.

    Reductions of a reading raise NotMeasured where it was never sampled, where it fell silent while
    others were sampled or vanished, where too many samples of a check lack it, and where a sample
    of it is not a finite number.
    """

    gpu: Component
    points: tuple[HistoryPoint, ...]
    outside: Mapping[str, OutOfRange] = field(default_factory=dict, compare=False)
    to_the_end: bool = field(default=False, compare=False)
    refused: Mapping[str, str] = field(default_factory=dict, compare=False)
    checks: tuple[tuple[str, float, float], ...] = field(default=(), compare=False)

    def _points(self, name: str) -> list[HistoryPoint]:
        found = [point for point in self.points if name in point.values]
        if not found:
            if name in self.outside:
                raise NotMeasured(
                    english(
                        "samples_left_out",
                        "{reading} of {gpu} was not measured ({outside}): {cure}",
                    ),
                    reading=name,
                    gpu=str(self.gpu),
                    outside=self.outside[name].message,
                    cure=DMESG_ADVICE,
                )
            raise NotMeasured(
                english("never_sampled", "{reading} of {gpu} was never sampled[: {cure}]"),
                reading=name,
                gpu=str(self.gpu),
                cure=DMESG_ADVICE,
            )
        if not all(
            math.isfinite(value)
            for point in found
            for value in (point.least(name), point.most(name))
        ):
            raise NotMeasured(
                english(
                    "sample_not_finite", "{reading} of {gpu} has a sample that is no finite number"
                ),
                reading=name,
                gpu=str(self.gpu),
            )
        seen = self.points[0].began_s
        for point in self.points:
            if name in point.values or name in point.partly:
                seen = point.boot_s
            elif point.boot_s - seen > GAP_S:
                raise NotMeasured(
                    english(
                        "fell_silent",
                        "{reading} of {gpu} fell silent for more than {seconds} s while others "
                        "were sampled: {cure}",
                    ),
                    reading=name,
                    gpu=str(self.gpu),
                    seconds=GAP_S,
                    cure=DMESG_ADVICE,
                )
        silent_s, most_s = (
            self.points[-1].boot_s - seen,
            SLOW_TAIL_S if name in sensor_range.SLOW else TAIL_S,
        )
        if self.to_the_end and silent_s > most_s:
            raise NotMeasured(
                english(
                    "vanished",
                    "{reading} of {gpu} vanished: the last {seconds} s of the watch did not tell "
                    "it any more: {cure}",
                ),
                reading=name,
                gpu=str(self.gpu),
                seconds=f"{silent_s:.1f}",
                cure=DMESG_ADVICE,
            )
        self._refuse_patches(name)
        return found

    def _refuse_patches(self, name: str) -> None:
        """Raise NotMeasured where a reading is missing from too many samples of a check.

        A single sample is excused, however short the check.
        """
        if name not in sensor_range.ranges():
            return
        slow = name in sensor_range.SLOW
        owed = [one for one in self.points if not slow or sensor_range.SLOW & one.values.keys()]
        moments = [one.boot_s for one in owed]
        period_s = SLOW_PERIOD_S if slow else PERIOD_S
        for check, begin_s, end_s in self.checks or ((None, -math.inf, math.inf),):
            # The point after the last one may have begun before the end.
            part = owed[bisect_left(moments, begin_s) : bisect_right(moments, end_s) + 1]
            samples = [(one, _samples_within(one, begin_s, end_s, period_s)) for one in part]
            due = sum(count for _, count in samples)
            missing = sum(
                count * one.partly.get(name, 1.0)
                for one, count in samples
                if name not in one.values
            )
            if missing > max(1.0, thresholds().sensor.missing * due):
                values = known(
                    reading=name,
                    gpu=str(self.gpu),
                    check=check,
                    share=f"{100 * missing / due:.0f}",
                    most=f"{100 * thresholds().sensor.missing:g}",
                    outside=self.outside[name].message if name in self.outside else None,
                    cure=DMESG_ADVICE,
                )
                raise NotMeasured(
                    english(
                        "too_many_missing",
                        "{reading} of {gpu} was not measured[ in {check}]: {share} % of its "
                        "samples were missing or out of range, more than {most} %[ ({outside})]: "
                        "{cure}",
                    ),
                    **values,
                )

    def vanished(self) -> dict[str, Message]:
        """Every reading that fell silent or vanished, with the message that says so, by name."""
        found = {}
        for name in sorted({name for point in self.points for name in point.values}):
            try:
                self._points(name)
            except NotMeasured as error:
                found[name] = error.message
        return found

    def points_with(self, name: str) -> tuple[HistoryPoint, ...]:
        """The points that have this reading."""
        return tuple(self._points(name))

    def offers(self, name: str) -> bool:
        """Whether any point has this reading."""
        return any(name in point.values for point in self.points)

    def maximum(self, name: str) -> float:
        """The largest value."""
        return max(point.most(name) for point in self._points(name))

    def minimum(self, name: str) -> float:
        """The smallest value."""
        return min(point.least(name) for point in self._points(name))

    def growth(self, name: str) -> float:
        """The last value of a counter minus its first.

        Raises NotMeasured for a single sample, and for a counter that fell: it was reset. Within
        the span of a point a counter grows from its minimum to its maximum, unless it fell; then
        its minimum is below the value before.
        """
        found = self._points(name)
        if len(found) < 2:
            raise NotMeasured(
                english("one_sample", "{reading} of {gpu} has one sample: growth needs two"),
                reading=name,
                gpu=str(self.gpu),
            )
        values = [value for point in found for value in (point.least(name), point.most(name))]
        if values != sorted(values):
            raise NotMeasured(
                english(
                    "counter_fell",
                    "{reading} of {gpu} fell: the counter was reset, so its growth is not known: "
                    "{cure}",
                ),
                reading=name,
                gpu=str(self.gpu),
                cure=DMESG_ADVICE,
            )
        return values[-1] - values[0]

    def seconds(self, flag: str) -> float:
        """How long a flag (0 or 1) was up, in seconds; at least a moment for each time it was seen.

        A sample counts until the next one begins, GAP_S at most. A point with a span counts by its
        share; the time until the next point counts by that share as well.
        """
        found = self._points(flag)
        total = 0.0
        for point, following in zip(found, [*found[1:], None], strict=True):
            if point.most(flag) > 0.0:
                until_next = following.began_s - point.boot_s if following is not None else 0.0
                lasted = point.span_s + min(max(until_next, 0.0), GAP_S)
                total += max(point.values[flag] * lasted, MOMENT_S)
        return total

    def held_back(self, flag: str, counter: str | None = None) -> ThrottleTime:
        """How long a reason held the clocks back, in seconds.

        The larger of the time by its samples and the driver's counter. Not counted are a lone
        sample within `edge_s` of the beginning or end of a load, the counter's growth during it,
        and a growth of at most `lasts_s` there that no sample shows. Healthy cards show such ticks
        (DCGM's issue 242, "violations totaling 0.0 seconds"). With more than `most` of them in a
        run, all count.
        """
        edges, excused = self._edges(), thresholds().lone_sample
        found = self._points(flag)
        lone = []
        for before, point, after in zip([None, *found], found, [*found[1:], None], strict=False):
            alone = all(one is None or one.most(flag) == 0.0 for one in (before, after))
            if (
                point.most(flag) > 0.0
                and not point.span_s
                and alone
                and _near(point.boot_s, point.boot_s, edges)
            ):
                lone.append(point.boot_s)
        by_sample = self.seconds(flag) - sum(self._duration_s(found, moment) for moment in lone)
        by_driver = 0.0
        ticks: list[tuple[float, float]] = []
        if counter is not None and self.offers(counter):
            by_driver = self.growth(counter)
            for before, after in pairwise(self._points(counter)):
                grown = after.values[counter] - before.values[counter]
                near = not after.span_s and _near(before.boot_s, after.boot_s, edges)
                if near and 0.0 < grown <= excused.lasts_s:
                    ticks.append((after.boot_s, grown))
        alike = [moment for moment, _ in ticks if not _near(moment, moment, lone)]
        if len(lone) + len(alike) > excused.most:
            return ThrottleTime(max(self.seconds(flag), by_driver))
        by_driver -= sum(grown for _, grown in ticks)
        return ThrottleTime(max(by_sample, by_driver, 0.0), tuple(sorted((*lone, *alike))))

    @staticmethod
    def _duration_s(points: Sequence[HistoryPoint], moment_s: float) -> float:
        """The seconds for which the sample at a moment counts in `seconds`."""
        for point, following in pairwise(points):
            if point.boot_s == moment_s:
                return max(min(max(following.began_s - point.boot_s, 0.0), GAP_S), MOMENT_S)
        return MOMENT_S

    def _edges(self) -> list[float]:
        """When a load began or ended on the GPU, in seconds since boot, by its utilisation."""
        points = [point for point in self.points if "utilisation" in point.values]
        least = thresholds().work.in_use
        return [
            moment
            for before, after in pairwise(points)
            if (before.least("utilisation") >= least) != (after.least("utilisation") >= least)
            for moment in (before.boot_s, after.boot_s)
        ]

    def moments(self, flag: str) -> tuple[tuple[float, float], ...]:
        """When a flag was up, as (from, to) in seconds since boot.

        It was up at least once within each.
        """
        return tuple(
            (point.began_s, point.boot_s) for point in self._points(flag) if point.most(flag) > 0.0
        )

    def under_load(self, name: str) -> float:
        """The smallest value in full use.

        Only from SETTLE_S after the beginning of full use to FALL_S before its end. Raises
        ValueError where the GPU was never in full use: then nothing is known of the reading under
        load.
        """
        self._points(name)
        values = [point.least(name) for point in self._in_full_use() if name in point.values]
        if not values:
            raise NotMeasured(
                english(
                    "never_in_full_use",
                    "{gpu} was never in full use while {reading} was sampled: {cure}",
                ),
                gpu=str(self.gpu),
                reading=name,
                cure=BURN_ADVICE,
            )
        return min(values)

    def _in_full_use(self) -> Iterator[HistoryPoint]:
        for stretch in self._stretches():
            since, until = stretch[0].began_s + SETTLE_S, stretch[-1].boot_s - FALL_S
            yield from (
                point for point in stretch if since <= point.began_s and point.boot_s <= until
            )

    def _stretches(self) -> Iterator[list[HistoryPoint]]:
        """Consecutive points in full use."""
        stretch: list[HistoryPoint] = []
        for point in self.points:
            if stretch and (not point.busy() or point.began_s - stretch[-1].boot_s > GAP_S):
                yield stretch
                stretch = []
            if point.busy():
                stretch.append(point)
        if stretch:
            yield stretch

    def longest_gap(self, begin_s: float, end_s: float) -> float:
        """The longest time within `begin_s` to `end_s` that no sample covers, in seconds.

        Gaps inside the span of a point are not seen.
        """
        told_until, longest = begin_s, 0.0
        for point in self.points:
            longest = max(longest, min(point.began_s, end_s) - told_until)
            told_until = max(told_until, min(point.boot_s, end_s))
        return max(longest, end_s - told_until)

    def period(self) -> float:
        """The median time from one sample to the next while every sample was kept, in seconds.

        Raises NotMeasured for fewer than two samples.
        """
        stamps = [point.boot_s for point in self.points if not point.span_s]
        steps = sorted(after - before for before, after in pairwise(stamps))
        if not steps:
            raise NotMeasured(
                english("too_few_samples", "{gpu} has fewer than two samples"), gpu=str(self.gpu)
            )
        return steps[len(steps) // 2]

    def slow_step(self, begin_s: float, end_s: float) -> float | None:
        """The 95th percentile of the steps between samples from `begin_s` to `end_s`, in seconds.

        Only while every sample was kept; None where there is no step.
        """
        stamps = [
            point.boot_s
            for point in self.points
            if not point.span_s and begin_s <= point.boot_s <= end_s
        ]
        steps = sorted(after - before for before, after in pairwise(stamps))
        return steps[math.ceil(0.95 * len(steps)) - 1] if steps else None


def _samples_within(point: HistoryPoint, begin_s: float, end_s: float, period_s: float) -> float:
    """For how many samples a point stands between two moments; one with a span for its part."""
    return (
        max(min(point.boot_s, end_s) - max(point.began_s, begin_s), 0.0) / period_s
        if point.span_s
        else float(begin_s <= point.boot_s <= end_s)
    )


def _near(since_s: float, until_s: float, moments: Sequence[float]) -> bool:
    edge_s = thresholds().lone_sample.edge_s
    return any(since_s - edge_s <= moment <= until_s + edge_s for moment in moments)


class Collector:
    """Collects the samples of every GPU, packed.

    `points` holds them by GPU, in order. `ranges` narrows the sensors' ranges of a GPU, by its
    name.
    """

    def __init__(self, ranges: Mapping[Component, Mapping[str, Range]] | None = None) -> None:
        self.points: dict[Component, list[HistoryPoint]] = {}
        self._ranges = ranges or {}
        self._outside: dict[Component, dict[str, OutOfRange]] = {}
        self._refused: dict[Component, dict[str, str]] = {}
        self._packer = Packer()

    def add(self, entry: Entry) -> None:
        """Add an entry; any other than a sample of a GPU, or its errors, is ignored."""
        body = entry.body
        if isinstance(body, Refused):
            self._refused.setdefault(body.component, {}).update(body.errors)
        if isinstance(body, Sample) and body.component is not None:
            # Rates for the live view are no readings of the watch: that they are in few samples, or
            # end when nobody looks on, is no sensor that fell silent.
            partly = self._left_out(body.component, body)
            left_out = [*partly, *(name for name in sensor_range.THROUGHPUT if name in body.values)]
            values, low, high = (
                one if one is None else self._packer.pack(_without(one, left_out))
                for one in (body.values, body.low, body.high)
            )
            assert values is not None
            self.points.setdefault(body.component, []).append(
                HistoryPoint(
                    entry.boot_s,
                    values,
                    body.span_s,
                    low,
                    high,
                    {name: share for name, share in partly.items() if share is not None},
                )
            )

    def _left_out(self, gpu: Component, sample: Sample) -> dict[str, float | None]:
        """The readings of a sample that are out of range; each is recorded.

        Each with the share of its span that is lost; None if no value of it is in range.
        """
        ranges = self._ranges.get(gpu, sensor_range.ranges())
        found: dict[str, float | None] = {}
        single = sample.low is None and sample.high is None
        for name, value in sample.values.items():
            if name not in ranges or (single and ranges[name][0] <= value <= ranges[name][1]):
                continue  # nearly all: samples are the bulk of a journal
            extremes = (
                value,
                *(
                    one[name]
                    for one in (sample.low, sample.high)
                    if one is not None and name in one
                ),
            )
            wrong = [
                one
                for one in extremes
                if math.isfinite(one) and sensor_range.outside(ranges, name, one)
            ]
            if wrong:
                least, most = (
                    value if one is None else one.get(name, value)
                    for one in (sample.low, sample.high)
                )
                some = len(wrong) < len(extremes)
                found[name] = _share_lost(ranges[name], value, least, most) if some else None
                known = self._outside.setdefault(gpu, {})
                before = known.get(name, OutOfRange(0, wrong[0], wrong[0], *ranges[name]))
                known[name] = before.plus(wrong[-1])
        return found

    def histories(
        self, checks: tuple[tuple[str, float, float], ...] = ()
    ) -> dict[Component, GpuHistory]:
        """The history of every GPU so far, by its name; `checks` loaded the machine meanwhile."""
        return {
            gpu: GpuHistory(
                gpu,
                tuple(found),
                dict(self._outside.get(gpu, {})),
                to_the_end=True,
                refused=dict(self._refused.get(gpu, {})),
                checks=checks,
            )
            for gpu, found in self.points.items()
        }


def _share_lost(within: Range, mean: float, least: float, most: float) -> float:
    """The largest share of a span's samples that can be out of range, by their mean.

    All of the span if it can be more than a sensor may miss.
    """
    low, high = within
    share = 1.0
    if least < low < most <= high:
        share = (most - mean) / (most - low)
    elif low <= least < high < most:
        share = (mean - least) / (high - least)
    return share if 0.0 < share <= thresholds().sensor.missing else 1.0


def _without(readings: Mapping[str, float], left_out: Sequence[str]) -> Mapping[str, float]:
    return (
        {name: value for name, value in readings.items() if name not in left_out}
        if left_out
        else readings
    )


def histories(entries: Iterable[Entry]) -> dict[Component, GpuHistory]:
    """The history of every GPU in a telemetry segment, by its name."""
    collector = Collector()
    for entry in entries:
        collector.add(entry)
    return collector.histories()


def running_at(
    moments: Sequence[tuple[float, float]], spans: Sequence[tuple[str, float, float]]
) -> tuple[str, ...]:
    """The checks that ran within any of these times (from, to), each once.

    `spans` are (check, begin, end); all times are seconds since boot.
    """
    names = [
        check
        for check, begin, end in spans
        if any(begin <= until and since <= end for since, until in moments)
    ]
    return tuple(dict.fromkeys(names))
