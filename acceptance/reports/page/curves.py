"""The telemetry of each GPU as shapes to draw, all on the same scales.

Pure: x is a cell's number, y 0 (top) to 100 (bottom).

Power and clock of every GPU over the first seconds of the first wave of power steps, as lines.

Pure: x is in hundredths of a second, y 0 (top) to 100 (bottom). All GPUs share a plot: the wave is
on all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from acceptance.core.evidence import Table
from acceptance.core.limit import number
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.record import CheckStarted, Entry, Note
from acceptance.core.spans import CheckSpan
from acceptance.reports.page.timeline import METRICS, Cell, Timeline, runs, stretches

# The rounding of each metric's scale, and its unit for people.
_STEPS = {"temperature_c": 10.0, "power_w": 50.0, "sm_clock_mhz": 100.0}
UNITS = {"temperature_c": "degC", "power_w": "W", "sm_clock_mhz": "MHz"}


@dataclass(frozen=True, slots=True)
class Plot:
    """One metric over time, of one part or of several.

    `lines` and `bands` are paths, `bottom` and `top` the ends of the scale, `least` and `most` the
    extremes.
    """

    metric: str
    unit: str
    lines: tuple[str, ...]
    bottom: str
    top: str
    least: str
    most: str
    bands: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Curves:
    """One GPU: its plots, and when its clock was held down.

    `slowed` (by heat or hardware) and `capped` (by the power cap) are stretches as (x, width).
    """

    gpu: str
    plots: tuple[Plot, ...]
    slowed: tuple[tuple[int, int], ...]
    capped: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """A check on the time line, with start and width in percent of it.

    `label` is a number if the phase is wide enough to be seen, else "". `row` is 1 for a check that
    ran beside one in row 0.
    """

    check: str
    seconds: float
    left: float
    width: float
    label: str
    row: int = 0


def curves(timeline: Timeline) -> Iterator[Curves]:
    """The curves of every GPU, sorted by name."""
    scales = {metric: _scale(metric, timeline) for metric in METRICS}
    for gpu, track in sorted(timeline.tracks.items()):
        plots = tuple(
            _plot(metric, track.cells[metric], scales[metric], timeline.width_s)
            for metric in METRICS
            if track.cells[metric]
        )
        yield Curves(str(gpu), plots, _rectangles(track.slowed), _rectangles(track.capped))


def cells(timeline: Timeline) -> int:
    """The number of cells of the time line: the width of every picture."""
    last = (
        max(numbers, default=0)
        for track in timeline.tracks.values()
        for numbers in track.cells.values()
    )
    return max(last, default=0) + 1


def _scale(metric: str, timeline: Timeline) -> tuple[float, float]:
    """The bottom and top of a metric's scale.

    They are the same for all GPUs, so that these can be compared.
    """
    step = _STEPS[metric]
    every = [cell for track in timeline.tracks.values() for cell in track.cells[metric].values()]
    top = math.ceil(max((cell.most for cell in every), default=0.0) / step) * step
    least = min((cell.least for cell in every), default=0.0)
    bottom = (
        math.floor(least / step) * step
        if metric == "temperature_c"
        else min(0.0, math.floor(least / step) * step)
    )
    return bottom, max(top, bottom + step)


def _plot(
    metric: str, cells: Mapping[int, Cell], scale: tuple[float, float], width_s: float
) -> Plot:
    bottom, top = scale

    def height(value: float) -> str:
        return f"{100 * (top - value) / (top - bottom):.1f}".removesuffix(".0")

    lines, bands = [], []
    for stretch in stretches(cells, width_s):
        lines.append(
            "M"
            + "L".join(f"{one} {height(cells[one].mean)}" for one in stretch)
            + ("h.5" if len(stretch) == 1 else "")
        )
        if any(cells[one].least < cells[one].most for one in stretch):
            over = [f"{one} {height(cells[one].most)}" for one in stretch]
            under = [f"{one} {height(cells[one].least)}" for one in reversed(stretch)]
            bands.append(f"M{'L'.join((*over, *under))}Z")
    least, most = (
        min(cell.least for cell in cells.values()),
        max(cell.most for cell in cells.values()),
    )
    shown = (number(value) for value in (bottom, top, least, most))
    return Plot(metric, UNITS[metric], tuple(lines), *shown, bands=tuple(bands))


def _rectangles(numbers: Iterable[int]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last - first + 1) for first, last in runs(numbers))


def phases(spans: Sequence[CheckSpan], timeline: Timeline, boot: int = 0) -> tuple[Phase, ...]:
    """The checks that ran while samples were taken, in order.

    A check that did not end lasts as long as the samples.
    """
    whole = cells(timeline) * timeline.width_s
    shown: list[Phase] = []
    busy_until = 0.0  # of row 0
    for span in sorted(spans, key=lambda span: span.began_s):
        begin, until = (
            max(span.began_s, timeline.began_s) - timeline.began_s,
            min(span.ended_s - timeline.began_s, whole),
        )
        if span.boot != boot or until <= begin:
            continue
        share = 100 * (until - begin) / whole
        label = str(1 + sum(bool(phase.label) for phase in shown)) if share >= 1.0 else ""
        left, row = round(100 * begin / whole, 2), int(begin < busy_until)
        busy_until = busy_until if row else until
        shown.append(Phase(span.check, until - begin, left, round(share, 2), label, row))
    return tuple(shown)


TABLE = "power_train"
# The table's columns, each with the rounding of its scale.
_COLUMNS = ("s", "W", "MHz")
_PULSE_STEPS = (("power_w", "W", 50.0), ("sm_clock_mhz", "MHz", 100.0))
MOST_ROWS = 200  # of a GPU; the power checks record no more
MOST_GPUS = 64


@dataclass(frozen=True, slots=True)
class Wave:
    """The wave of one check: its step as the journal names it, its GPUs, its plots.

    `width` is that of the picture, whole half seconds.
    """

    check: str
    step: Message | None
    gpus: tuple[Component, ...]
    width: int
    plots: tuple[Plot, ...]

    @property
    def ticks(self) -> tuple[str, ...]:
        """Seconds under the picture, at equal distances."""
        return tuple(number(self.width * part / 400) for part in range(5))


def waves(entries: Iterable[Entry]) -> Iterator[Wave]:
    """The first wave of each check that recorded one, in the order of the checks."""
    steps: dict[str, Message] = {}
    found: dict[str, dict[Component, list[tuple[float, ...]]]] = {}
    running: dict[str, str] = {}  # by the segment of its session
    for entry in entries:
        body = entry.body
        if isinstance(body, CheckStarted):
            running[entry.segment] = body.check
        elif isinstance(body, Note) and isinstance(body.text, Message):
            step = body.text.values.get("step")
            if isinstance(step, Message) and step.code == "power_step_square":
                steps.setdefault(running.get(entry.segment, ""), step)
        elif isinstance(body, Table) and body.name == TABLE and body.columns == _COLUMNS:
            own = found.setdefault(body.check, {})
            rows = list(_rows(body))
            if rows and len(own) < MOST_GPUS:
                own[body.component] = rows
    for name, tracks in found.items():
        if tracks:
            yield _wave(name, steps.get(name), tracks)


def _rows(table: Table) -> Iterator[tuple[float, ...]]:
    """The rows that can be drawn: a journal may hold anything."""
    for row in table.rows[:MOST_ROWS]:
        cells = tuple(cell for cell in row if not isinstance(cell, str) and 0.0 <= cell < 1e6)
        if len(cells) == len(row) == len(_COLUMNS):
            yield cells


def _wave(
    check: str, step: Message | None, tracks: dict[Component, list[tuple[float, ...]]]
) -> Wave:
    seconds = max(row[0] for rows in tracks.values() for row in rows)
    plots = []
    for column, (metric, unit, rounding) in enumerate(_PULSE_STEPS, start=1):
        values = [row[column] for rows in tracks.values() for row in rows]
        top = max(1, math.ceil(max(values) / rounding)) * rounding
        lines = tuple(
            "M"
            + "L".join(f"{100 * row[0]:.4g} {100 - 100 * row[column] / top:.3g}" for row in rows)
            + ("h2" if len(rows) == 1 else "")
            for _, rows in sorted(tracks.items())
        )
        shown = (number(value) for value in (0.0, top, min(values), max(values)))
        plots.append(Plot(metric, unit, lines, *shown))
    width = 50 * max(1, math.ceil(2 * seconds))
    return Wave(check, step, tuple(sorted(tracks)), width, tuple(plots))
