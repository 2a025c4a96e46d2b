"""The samples of every GPU over a run, reduced to a fixed number of cells. Pure.

No extreme is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from acceptance.core import clock_reasons
from acceptance.core.parts import Component
from acceptance.diagnosis.gpu_history import GAP_S
from acceptance.journal.samples import GpuSample, TimedSample

MAX_CELLS = 480  # cells of a picture: a little wider than a pixel of a phone each
FIRST_WIDTH_S = 0.25
METRICS = ("temperature_c", "power_w", "sm_clock_mhz")
_METRICS = {
    name: (attrgetter(f"values.{name}"), attrgetter(f"low.{name}"), attrgetter(f"high.{name}"))
    for name in METRICS
}
_FLAGS = {
    name: attrgetter(f"values.{name}")
    for name in (*clock_reasons.HEAT_OR_HARDWARE, clock_reasons.POWER_CAP)
}


@dataclass(slots=True)
class Cell:
    """One metric in one stretch of time: its least and most, and its mean as `total` / `count`."""

    least: float
    most: float
    total: float
    count: int = 1

    @property
    def mean(self) -> float:
        """The mean of the samples."""
        return self.total / self.count

    def merge(self, other: Cell) -> Cell:
        """Both stretches as one."""
        return Cell(
            min(self.least, other.least),
            max(self.most, other.most),
            self.total + other.total,
            self.count + other.count,
        )


@dataclass(slots=True)
class Track:
    """One GPU: the cells of each metric by number, and when its clock was held down.

    `slowed` and `capped` are the numbers of the cells in which heat or hardware, or the power cap,
    held it down.
    """

    cells: dict[str, dict[int, Cell]] = field(
        default_factory=lambda: {name: {} for name in METRICS}
    )
    slowed: set[int] = field(default_factory=set)
    capped: set[int] = field(default_factory=set)

    def halve(self) -> None:
        """Merge every two cells into one."""
        for name, cells in self.cells.items():
            merged: dict[int, Cell] = {}
            for number, cell in cells.items():
                known = merged.get(number // 2)
                merged[number // 2] = known.merge(cell) if known else cell
            self.cells[name] = merged
        self.slowed = {number // 2 for number in self.slowed}
        self.capped = {number // 2 for number in self.capped}


@dataclass(frozen=True, slots=True)
class Timeline:
    """The tracks of all GPUs by name.

    Cell `n` covers `width_s` seconds from `began_s + n * width_s` on, in seconds since boot.
    `ended_s` is the time of the last sample.
    """

    began_s: float
    ended_s: float
    width_s: float
    tracks: Mapping[Component, Track]


class _Gatherer:
    """Collect samples into cells; the run's end need not be known.

    It starts with narrow cells, and merges every two of them when a sample lies beyond the last.
    """

    def __init__(self, began_s: float) -> None:
        self.began_s = self.ended_s = began_s
        self.width_s = FIRST_WIDTH_S
        self.tracks: dict[Component, Track] = {}
        # The open cell, its start and end, and its samples by GPU: reducing them together is
        # several times as fast.
        self.number, self.since_s, self.until_s = 0, began_s, began_s
        self.open: dict[Component, list[GpuSample]] = {}

    def add(self, gpu: Component, sample: TimedSample) -> None:
        body, moment = sample.body, sample.boot_s
        if not self.since_s <= moment < self.until_s:
            self._turn_to(moment)
        if moment > self.ended_s:
            self.ended_s = moment
        if body.span_s:
            first = int((moment - body.span_s - self.began_s) / self.width_s)
            for one in range(max(0, first), self.number):
                self._put(gpu, one, [body])
        held = self.open.get(gpu)
        if held is None:
            self.open[gpu] = [body]
        else:
            held.append(body)

    def _turn_to(self, moment: float) -> None:
        """Open the cell of this time."""
        self.close()
        number = int((moment - self.began_s) / self.width_s)
        if number >= MAX_CELLS:
            self._widen(number)
            number = int((moment - self.began_s) / self.width_s)
        self.number = max(0, number)
        self.since_s = self.began_s + self.number * self.width_s
        self.until_s = self.since_s + self.width_s

    def close(self) -> None:
        """Reduce the samples of the open cell."""
        for gpu, samples in self.open.items():
            self._put(gpu, self.number, samples)
        self.open = {}

    def _widen(self, number: int) -> None:
        while number >= MAX_CELLS:
            self.width_s *= 2
            number //= 2
            for track in self.tracks.values():
                track.halve()

    def _put(self, gpu: Component, number: int, samples: list[GpuSample]) -> None:
        track = self.tracks.setdefault(gpu, Track())
        spans = [one for one in samples if one.span_s]
        for name, (mean, low, high) in _METRICS.items():
            values = _known(mean, samples)
            if values:
                lows = _known(low, (one for one in spans if one.low))
                highs = _known(high, (one for one in spans if one.high))
                cell = Cell(min(values + lows), max(values + highs), sum(values), len(values))
                known = track.cells[name].get(number)
                track.cells[name][number] = known.merge(cell) if known else cell
        if _up(clock_reasons.POWER_CAP, samples, spans):
            track.capped.add(number)
        if any(_up(flag, samples, spans) for flag in clock_reasons.HEAT_OR_HARDWARE):
            track.slowed.add(number)


def _known(reading: attrgetter[float | None], samples: Iterable[GpuSample]) -> list[float]:
    return [value for value in map(reading, samples) if value is not None]


def _up(flag: str, samples: list[GpuSample], spans: list[GpuSample]) -> bool:
    """Whether a flag was ever set."""
    return any(map(_FLAGS[flag], samples)) or any(getattr(one.high, flag, None) for one in spans)


def timeline(began_s: float, samples: Iterable[TimedSample], expected_s: float = 0.0) -> Timeline:
    """Reduce samples that are in order; those without a component are ignored.

    `expected_s` is the likely duration, which saves work.
    """
    gatherer = _Gatherer(began_s)
    while expected_s >= gatherer.width_s * MAX_CELLS:
        gatherer.width_s *= 2
    for sample in samples:
        if sample.body.component is not None:
            gatherer.add(sample.body.component, sample)
    gatherer.close()
    return Timeline(began_s, gatherer.ended_s, gatherer.width_s, gatherer.tracks)


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Numbers as stretches of consecutive ones, first and last of each."""
    first = last = None
    for number in sorted(numbers):
        if first is None or last is None:
            first = last = number
        elif number == last + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last


def stretches(cells: Mapping[int, Cell], width_s: float) -> Iterator[list[int]]:
    """The numbers of cells in order, one list per stretch without a gap in the sampling."""
    stretch: list[int] = []
    for number in sorted(cells):
        if stretch and (number - stretch[-1] - 1) * width_s > GAP_S:
            yield stretch
            stretch = []
        stretch.append(number)
    if stretch:
        yield stretch
