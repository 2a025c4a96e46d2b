"""The telemetry of one GPU over a run, reduced to the figures that are judged. Pure.

In the first hour every sample is kept; after it a sample stands for some seconds (`span_s`) with mean, minimum and maximum. Each reduction
says what it does with both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from acceptance.judge.readings import Packer
from acceptance.judge.record import Entry, Sample

# A GPU in full use; between bursts and while it winds down it is not.
BUSY = 0.9
# A link is trained up when work begins: what it does in the first seconds of a stretch of full use is no fault.
SETTLE_S = 2.0
# Use is the driver's own average over up to a second: that long it may tell of full use that is over, and of a link that is down again.
EBB_S = 1.0
# Samples that are further apart than this say nothing of the time between them.
GAP_S = 5.0
# What helps where something is not known.
LOOK = "look for NVRM lines in `dmesg`, and run again"
LOAD = "run a profile with a burn, or a longer one (BURN=120)"
# What a flag that was seen counts for at least: it was up for a moment, even in the last sample of all.
MOMENT_S = 0.001


@dataclass(frozen=True, slots=True)
class Point:
    """Readings at one moment (`span_s` 0), or their means over the `span_s` seconds before it with their extremes.

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
        """The smallest value that is known of this point. Raises KeyError where the reading is absent."""
        return self.low[name] if self.low is not None and name in self.low else self.values[name]

    def most(self, name: str) -> float:
        """The largest value that is known of this point. Raises KeyError where the reading is absent."""
        return self.high[name] if self.high is not None and name in self.high else self.values[name]

    def busy(self) -> bool:
        """Whether the GPU was in full use, all of the time that this point stands for."""
        return "utilisation" in self.values and self.least("utilisation") >= BUSY


@dataclass(frozen=True, slots=True)
class GpuHistory:
    """Every point of one GPU, in order.

    Reductions of a reading raise ValueError where it was never sampled, where it fell silent while others were sampled, and where a
    sample of it is no finite number.
    """

    gpu: str
    points: tuple[Point, ...]

    def _points(self, name: str) -> list[Point]:
        found = [point for point in self.points if name in point.values]
        if not found:
            raise ValueError(f"{name} of {self.gpu} was never sampled: {LOOK}")
        if not all(math.isfinite(value) for point in found for value in (point.least(name), point.most(name))):
            raise ValueError(f"{name} of {self.gpu} has a sample that is no finite number")
        seen = self.points[0].began_s
        for point in self.points:
            if name in point.values:
                seen = point.boot_s
            elif point.boot_s - seen > GAP_S:
                told = f"{name} of {self.gpu} fell silent for more than {GAP_S:g} s while others were sampled"
                raise ValueError(f"{told}: {LOOK}")
        return found

    def known(self, name: str) -> tuple[Point, ...]:
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
        """Last value of a counter less its first. Raises ValueError for one sample alone, and for a counter that fell: it was reset.

        Within the time that a point stands for a counter begins at its least and ends at its most, unless it fell; then its least lies
        below what it was before.
        """
        found = self._points(name)
        if len(found) < 2:
            raise ValueError(f"{name} of {self.gpu} has one sample: growth needs two")
        values = [value for point in found for value in (point.least(name), point.most(name))]
        if values != sorted(values):
            told = f"{name} of {self.gpu} fell: the counter was reset, so its growth is not known"
            raise ValueError(f"{told}: {LOOK}")
        return values[-1] - values[0]

    def seconds(self, flag: str) -> float:
        """For how long a flag (0 or 1) was up, each seen for a moment at least.

        A sample holds until the next one begins, GAP_S at most. Of a point that stands for a span its share counts, and the time until
        the next one like that of a sample that is up as often.
        """
        found = self._points(flag)
        total = 0.0
        for point, following in zip(found, [*found[1:], None], strict=True):
            if point.most(flag) > 0.0:
                until_next = following.began_s - point.boot_s if following is not None else 0.0
                lasted = point.span_s + min(max(until_next, 0.0), GAP_S)
                total += max(point.values[flag] * lasted, MOMENT_S)
        return total

    def moments(self, flag: str) -> tuple[tuple[float, float], ...]:
        """When a flag was seen up, as times from and to, in seconds since boot: within each it was up at least once."""
        return tuple((point.began_s, point.boot_s) for point in self._points(flag) if point.most(flag) > 0.0)

    def under_load(self, name: str) -> float:
        """The smallest value while the GPU was in full use for SETTLE_S already, and for EBB_S still.

        Raises ValueError where it never was: then nothing is known of the reading under load.
        """
        self._points(name)
        values = [point.least(name) for point in self._in_full_use() if name in point.values]
        if not values:
            raise ValueError(f"{self.gpu} was never in full use while {name} was sampled: {LOAD}")
        return min(values)

    def _in_full_use(self) -> Iterator[Point]:
        for stretch in self._stretches():
            since, until = stretch[0].began_s + SETTLE_S, stretch[-1].boot_s - EBB_S
            yield from (point for point in stretch if since <= point.began_s and point.boot_s <= until)

    def _stretches(self) -> Iterator[list[Point]]:
        """Points in full use that follow upon each other."""
        stretch: list[Point] = []
        for point in self.points:
            if stretch and (not point.busy() or point.began_s - stretch[-1].boot_s > GAP_S):
                yield stretch
                stretch = []
            if point.busy():
                stretch.append(point)
        if stretch:
            yield stretch

    def longest_gap(self, begin_s: float, end_s: float) -> float:
        """The longest time between two moments of which no sample tells, in seconds. What lies between samples of one span is not seen."""
        told_until, longest = begin_s, 0.0
        for point in self.points:
            longest = max(longest, min(point.began_s, end_s) - told_until)
            told_until = max(told_until, min(point.boot_s, end_s))
        return max(longest, end_s - told_until)

    def period(self) -> float:
        """The usual time from one sample to the next while every sample was kept, in seconds. Raises ValueError for fewer than two."""
        stamps = [point.boot_s for point in self.points if not point.span_s]
        steps = sorted(after - before for before, after in pairwise(stamps))
        if not steps:
            raise ValueError(f"{self.gpu} has fewer than two samples")
        return steps[len(steps) // 2]

    def slow_step(self, begin_s: float, end_s: float) -> float | None:
        """The time in seconds that 95 of 100 steps between two moments keep to, while every sample was kept; None for no step at all."""
        stamps = [point.boot_s for point in self.points if not point.span_s and begin_s <= point.boot_s <= end_s]
        steps = sorted(after - before for before, after in pairwise(stamps))
        return steps[math.ceil(0.95 * len(steps)) - 1] if steps else None


class Collector:
    """Gathers the samples of every GPU, packed; `points` are those of each by its name, in order."""

    def __init__(self) -> None:
        self.points: dict[str, list[Point]] = {}
        self._packer = Packer()

    def add(self, entry: Entry) -> None:
        """Take an entry; what is no sample of a GPU is passed over."""
        body = entry.body
        if isinstance(body, Sample) and body.component is not None:
            values, low, high = (
                one if one is None else self._packer.pack(one) for one in (body.values, body.low, body.high)
            )
            assert values is not None
            self.points.setdefault(body.component, []).append(Point(entry.boot_s, values, body.span_s, low, high))

    def histories(self) -> dict[str, GpuHistory]:
        """The history of every GPU so far, by its name."""
        return {gpu: GpuHistory(gpu, tuple(found)) for gpu, found in self.points.items()}


def histories(entries: Iterable[Entry]) -> dict[str, GpuHistory]:
    """The history of every GPU in a telemetry segment, by its name."""
    collector = Collector()
    for entry in entries:
        collector.add(entry)
    return collector.histories()


def running_at(moments: Sequence[tuple[float, float]], spans: Sequence[tuple[str, float, float]]) -> tuple[str, ...]:
    """The checks that were running within any of these times (from, to), of spans (check, begin, end), each once; seconds since boot."""
    names = [check for check, begin, end in spans if any(begin <= until and since <= end for since, until in moments)]
    return tuple(dict.fromkeys(names))
