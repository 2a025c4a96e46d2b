"""The telemetry of one GPU over a run, reduced to the figures that are judged. Pure.

In the first hour every sample is kept; after it a sample stands for some seconds (`span_s`) with
mean, minimum and maximum. Each reduction says what it does with both. Values outside a sensor's
range (`sensor_range`) are left out, and said: they were not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from acceptance.core.record import Entry, Sample
from acceptance.expect import sensor_range
from acceptance.journal.packed_samples import Packer

# A GPU in full use; between bursts and while it winds down it is not.
BUSY = 0.9
# A link is trained up when work begins: what it does in the first seconds of a stretch of full use
# is no fault.
SETTLE_S = 2.0
# Use is the driver's own average over up to a second: that long it may tell of full use that is
# over, and of a link that is down again.
FALL_S = 1.0
# Samples that are further apart than this say nothing of the time between them.
GAP_S = 5.0
# A reading that was there is silent when the last samples of all lack it for so long: taken five
# times a second, or once.
TAIL_S, SLOW_TAIL_S = 1.2, 2.5
# A GPU is in use from this share of its time on; above and below it a load begins and ends.
IN_USE = 0.5
# How far from the begin or end of a load a lone sample of a slowdown lies at its edge: the driver's
# use is an average of up to a second.
EDGE_S = 1.5
# What one sample may stand for at most, and how many of them at edges a run may show before they
# count like any other.
LONE_S, MOST_LONE = 0.2, 3
# What helps where something is not known.
DMESG_ADVICE = "look for NVRM lines in `dmesg`, and run again"
BURN_ADVICE = "run a profile with a burn, or a longer one (BURN=120)"
# What a flag that was seen counts for at least: it was up for a moment, even in the last sample of
# all.
MOMENT_S = 0.001


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """Readings at one moment (`span_s` 0), or their means over the `span_s` seconds before it with
    their extremes.

    A reading without extremes of its own was the same all the time.
    """

    boot_s: float
    values: Mapping[str, float]
    span_s: float = 0.0
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None

    @property
    def began_s(self) -> float:
        """When what it tells of began, in seconds since boot."""
        return self.boot_s - self.span_s

    def least(self, name: str) -> float:
        """The smallest value that is known of this point.

        Raises KeyError where the reading is absent.
        """
        return self.low[name] if self.low is not None and name in self.low else self.values[name]

    def most(self, name: str) -> float:
        """The largest value that is known of this point.

        Raises KeyError where the reading is absent.
        """
        return self.high[name] if self.high is not None and name in self.high else self.values[name]

    def busy(self) -> bool:
        """Whether the GPU was in full use, all of the time that this point stands for."""
        return "utilisation" in self.values and self.least("utilisation") >= BUSY


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """Samples of one reading that lay outside its sensor's range: how many, the least and the
    largest value, and the range.
    """

    count: int
    least: float
    most: float
    low: float
    high: float

    def __str__(self) -> str:
        values = (
            f"{self.least:g}" if self.least == self.most else f"{self.least:g} to {self.most:g}"
        )
        samples = "1 sample" if self.count == 1 else f"{self.count} samples"
        return (
            f"{samples} of {values}, outside {self.low:g} to {self.high:g}, which no such "
            "sensor "
            "can mean"
        )

    def plus(self, value: float) -> OutOfRange:
        """With one sample more."""
        return OutOfRange(
            self.count + 1, min(self.least, value), max(self.most, value), self.low, self.high
        )


@dataclass(frozen=True, slots=True)
class ThrottleTime:
    """For how long a reason held the clocks back, in seconds, and the lone samples at the edge of a
    load that were not counted.

    `lone` holds their moments in seconds since boot.
    """

    seconds: float
    lone: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuHistory:
    """Every point of one GPU, in order.

    `outside` holds the samples that were left out because no sensor can mean them, by reading;
    `to_the_end` says that the points go on until now, so that a reading which the last of them lack
    has vanished.

    Reductions of a reading raise ValueError where it was never sampled, where it fell silent while
    others were sampled or vanished, and where a sample of it is no finite number.
    """

    gpu: str
    points: tuple[HistoryPoint, ...]
    outside: Mapping[str, OutOfRange] = field(default_factory=dict, compare=False)
    to_the_end: bool = field(default=False, compare=False)

    def _points(self, name: str) -> list[HistoryPoint]:
        found = [point for point in self.points if name in point.values]
        if not found:
            if name in self.outside:
                raise ValueError(
                    f"{name} of {self.gpu} was not measured ({self.outside[name]}): {DMESG_ADVICE}"
                )
            raise ValueError(f"{name} of {self.gpu} was never sampled: {DMESG_ADVICE}")
        if not all(
            math.isfinite(value)
            for point in found
            for value in (point.least(name), point.most(name))
        ):
            raise ValueError(f"{name} of {self.gpu} has a sample that is no finite number")
        seen = self.points[0].began_s
        for point in self.points:
            if name in point.values:
                seen = point.boot_s
            elif point.boot_s - seen > GAP_S:
                text = (
                    f"{name} of {self.gpu} fell silent for more than {GAP_S:g} s while others "
                    "were sampled"
                )
                raise ValueError(f"{text}: {DMESG_ADVICE}")
        silent_s, most_s = (
            self.points[-1].boot_s - seen,
            SLOW_TAIL_S if name in sensor_range.SLOW else TAIL_S,
        )
        if self.to_the_end and silent_s > most_s:
            text = (
                f"{name} of {self.gpu} vanished: the last {silent_s:.1f} s of the watch did "
                "not "
                "tell it any more"
            )
            raise ValueError(f"{text}: {DMESG_ADVICE}")
        return found

    def vanished(self) -> dict[str, str]:
        """Every reading that was there and fell silent or vanished, by its name, with the
        sentence that says so.
        """
        found = {}
        for name in sorted({name for point in self.points for name in point.values}):
            try:
                self._points(name)
            except ValueError as error:
                found[name] = str(error)
        return found

    def points_with(self, name: str) -> tuple[HistoryPoint, ...]:
        """The points that have a reading."""
        return tuple(self._points(name))

    def offers(self, name: str) -> bool:
        """Whether this reading was ever there."""
        return any(name in point.values for point in self.points)

    def maximum(self, name: str) -> float:
        """The largest value."""
        return max(point.most(name) for point in self._points(name))

    def minimum(self, name: str) -> float:
        """The smallest value."""
        return min(point.least(name) for point in self._points(name))

    def growth(self, name: str) -> float:
        """Last value of a counter less its first.

        Raises ValueError for one sample alone, and for a counter that fell: it was reset.

        Within the time that a point stands for a counter begins at its least and ends at its most,
        unless it fell; then its least lies below what it was before.
        """
        found = self._points(name)
        if len(found) < 2:
            raise ValueError(f"{name} of {self.gpu} has one sample: growth needs two")
        values = [value for point in found for value in (point.least(name), point.most(name))]
        if values != sorted(values):
            text = f"{name} of {self.gpu} fell: the counter was reset, so its growth is not known"
            raise ValueError(f"{text}: {DMESG_ADVICE}")
        return values[-1] - values[0]

    def seconds(self, flag: str) -> float:
        """For how long a flag (0 or 1) was up, each seen for a moment at least.

        A sample holds until the next one begins, GAP_S at most. Of a point that stands for a span
        its share counts, and the time until the next one like that of a sample that is up as often.
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
        """For how long a reason held the clocks back: by its samples, or by the driver's own sum
        where that is more.

        A lone sample within EDGE_S of the begin or end of a load is not counted, nor what the
        driver's sum grew by meanwhile, nor a growth of at most LONE_S there that no sample shows:
        such ticks are seen on healthy cards (DCGM's issue 242, "violations totaling 0.0 seconds").
        More than MOST_LONE of them in a run count like any other.
        """
        edges = self._edges()
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
                if near and 0.0 < grown <= LONE_S:
                    ticks.append((after.boot_s, grown))
        alike = [moment for moment, _ in ticks if not _near(moment, moment, lone)]
        if len(lone) + len(alike) > MOST_LONE:
            return ThrottleTime(max(self.seconds(flag), by_driver))
        by_driver -= sum(grown for _, grown in ticks)
        return ThrottleTime(max(by_sample, by_driver, 0.0), tuple(sorted((*lone, *alike))))

    @staticmethod
    def _duration_s(points: Sequence[HistoryPoint], moment_s: float) -> float:
        """The seconds for which the sample of a moment counts, as `seconds` has them."""
        for point, following in pairwise(points):
            if point.boot_s == moment_s:
                return max(min(max(following.began_s - point.boot_s, 0.0), GAP_S), MOMENT_S)
        return MOMENT_S

    def _edges(self) -> list[float]:
        """When a load began or ended on it, in seconds since boot, as far as its use tells."""
        points = [point for point in self.points if "utilisation" in point.values]
        return [
            moment
            for before, after in pairwise(points)
            if (before.least("utilisation") >= IN_USE) != (after.least("utilisation") >= IN_USE)
            for moment in (before.boot_s, after.boot_s)
        ]

    def moments(self, flag: str) -> tuple[tuple[float, float], ...]:
        """When a flag was seen up, as times from and to, in seconds since boot: within each it
        was up at least once.
        """
        return tuple(
            (point.began_s, point.boot_s) for point in self._points(flag) if point.most(flag) > 0.0
        )

    def under_load(self, name: str) -> float:
        """The smallest value while the GPU was in full use for SETTLE_S already, and for FALL_S
        still.

        Raises ValueError where it never was: then nothing is known of the reading under load.
        """
        self._points(name)
        values = [point.least(name) for point in self._in_full_use() if name in point.values]
        if not values:
            raise ValueError(
                f"{self.gpu} was never in full use while {name} was sampled: {BURN_ADVICE}"
            )
        return min(values)

    def _in_full_use(self) -> Iterator[HistoryPoint]:
        for stretch in self._stretches():
            since, until = stretch[0].began_s + SETTLE_S, stretch[-1].boot_s - FALL_S
            yield from (
                point for point in stretch if since <= point.began_s and point.boot_s <= until
            )

    def _stretches(self) -> Iterator[list[HistoryPoint]]:
        """Points in full use that follow upon each other."""
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
        """The longest time between two moments of which no sample tells, in seconds.

        What lies between samples of one span is not seen.
        """
        told_until, longest = begin_s, 0.0
        for point in self.points:
            longest = max(longest, min(point.began_s, end_s) - told_until)
            told_until = max(told_until, min(point.boot_s, end_s))
        return max(longest, end_s - told_until)

    def period(self) -> float:
        """The usual time from one sample to the next while every sample was kept, in seconds.

        Raises ValueError for fewer than two.
        """
        stamps = [point.boot_s for point in self.points if not point.span_s]
        steps = sorted(after - before for before, after in pairwise(stamps))
        if not steps:
            raise ValueError(f"{self.gpu} has fewer than two samples")
        return steps[len(steps) // 2]

    def slow_step(self, begin_s: float, end_s: float) -> float | None:
        """The time in seconds that 95 of 100 steps between two moments keep to, while every
        sample was kept; None for no step at all.
        """
        stamps = [
            point.boot_s
            for point in self.points
            if not point.span_s and begin_s <= point.boot_s <= end_s
        ]
        steps = sorted(after - before for before, after in pairwise(stamps))
        return steps[math.ceil(0.95 * len(steps)) - 1] if steps else None


def _near(since_s: float, until_s: float, moments: Sequence[float]) -> bool:
    return any(since_s - EDGE_S <= moment <= until_s + EDGE_S for moment in moments)


class Collector:
    """Gathers the samples of every GPU, packed; `points` are those of each by its name, in order.

    `ranges` narrows the sensors' ranges for a GPU, by its name.
    """

    def __init__(
        self, ranges: Mapping[str, Mapping[str, sensor_range.Range]] | None = None
    ) -> None:
        self.points: dict[str, list[HistoryPoint]] = {}
        self._ranges = ranges or {}
        self._outside: dict[str, dict[str, OutOfRange]] = {}
        self._packer = Packer()

    def add(self, entry: Entry) -> None:
        """Take an entry; what is no sample of a GPU is passed over."""
        body = entry.body
        if isinstance(body, Sample) and body.component is not None:
            left_out = self._left_out(body.component, body)
            values, low, high = (
                one if one is None else self._packer.pack(_without(one, left_out))
                for one in (body.values, body.low, body.high)
            )
            assert values is not None
            self.points.setdefault(body.component, []).append(
                HistoryPoint(entry.boot_s, values, body.span_s, low, high)
            )

    def _left_out(self, gpu: str, sample: Sample) -> list[str]:
        """The readings of a sample that lie outside their range; each is written down."""
        ranges = self._ranges.get(gpu, sensor_range.RANGES)
        found = []
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
                found.append(name)
                known = self._outside.setdefault(gpu, {})
                before = known.get(name, OutOfRange(0, wrong[0], wrong[0], *ranges[name]))
                known[name] = before.plus(wrong[-1])
        return found

    def histories(self) -> dict[str, GpuHistory]:
        """The history of every GPU so far, by its name."""
        return {
            gpu: GpuHistory(gpu, tuple(found), dict(self._outside.get(gpu, {})), to_the_end=True)
            for gpu, found in self.points.items()
        }


def _without(readings: Mapping[str, float], left_out: Sequence[str]) -> Mapping[str, float]:
    return (
        {name: value for name, value in readings.items() if name not in left_out}
        if left_out
        else readings
    )


def histories(entries: Iterable[Entry]) -> dict[str, GpuHistory]:
    """The history of every GPU in a telemetry segment, by its name."""
    collector = Collector()
    for entry in entries:
        collector.add(entry)
    return collector.histories()


def running_at(
    moments: Sequence[tuple[float, float]], spans: Sequence[tuple[str, float, float]]
) -> tuple[str, ...]:
    """The checks that were running within any of these times (from, to), of spans (check, begin,
    end), each once; seconds since boot.
    """
    names = [
        check
        for check, begin, end in spans
        if any(begin <= until and since <= end for since, until in moments)
    ]
    return tuple(dict.fromkeys(names))
