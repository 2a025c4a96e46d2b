"""Series of measurements over nights as shapes to draw.

Pure: x is a night's place from the left, y 0 (top) to 100 (bottom).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from acceptance.core.limit import number
from acceptance.history.trend import TrendPoint, TrendRow

# places of a plot; if there are more nights, several share one, drawn from the least to the most
# with their median
CELLS = 240
_ROOM = 0.06  # share of the scale left free above and below


@dataclass(frozen=True, slots=True)
class TrendPlot:
    """One series.

    `lines` and `bands` are paths, `outside` and `apart` the places of marks as (x, y), `eras` the
    places where another era begins. `born` (the baseline) and `median` are heights, None if there
    are none; `bottom` and `top` the ends of the scale.
    """

    lines: tuple[str, ...]
    bands: tuple[str, ...]
    outside: tuple[tuple[float, str], ...]
    apart: tuple[tuple[float, str], ...]
    eras: tuple[float, ...]
    born: str | None
    median: str | None
    bottom: str
    top: str


def width(nights: int) -> int:
    """The number of places of a plot of so many nights."""
    return max(1, min(nights, CELLS))


def draw(row: TrendRow, places: Mapping[str, int]) -> TrendPlot:
    """Draw one series; `places` has the number of each night by its run, from 0."""
    count = len(places)
    points = row.series.points
    known = [point.value for point in points] + ([row.born] if row.born is not None else [])
    low, high = min(known), max(known)
    room = _ROOM * ((high - low) or abs(high) or 1.0)
    low, high = low - room, high + room

    def height(value: float) -> str:
        return f"{100 * (high - value) / (high - low):.1f}".removesuffix(".0")

    def at(point: TrendPoint) -> float:
        return float(places[point.run_id] * width(count) // count) + 0.5

    lines: list[str] = []
    bands: list[str] = []
    for _, stretch in groupby(points, key=lambda point: point.era):
        cells = [(x, [point.value for point in found]) for x, found in groupby(stretch, key=at)]
        path = "L".join(f"{x:g} {height(statistics.median(values))}" for x, values in cells)
        lines.append(f"M{path}{'h.1' if len(cells) == 1 else ''}")
        bands += _band(cells, height)
    return TrendPlot(
        tuple(lines),
        tuple(bands),
        tuple(
            (at(point), height(point.value)) for point in points if point.outside or point.unsteady
        ),
        tuple((at(point), height(point.value)) for point in points if not point.held),
        tuple(at(points[place]) - 0.5 for place, _ in row.began),
        None if row.born is None else height(row.born),
        None if row.summary.median is None else height(row.summary.median),
        number(low),
        number(high),
    )


def _band(
    cells: Sequence[tuple[float, list[float]]], height: Callable[[float], str]
) -> Iterator[str]:
    """The area from the least to the most of each cell, if cells hold more than one night."""
    if any(len(values) > 1 for _, values in cells):
        over = [f"{x:g} {height(max(values))}" for x, values in cells]
        under = [f"{x:g} {height(min(values))}" for x, values in reversed(cells)]
        yield f"M{'L'.join((*over, *under))}Z"
