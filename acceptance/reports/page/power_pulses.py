"""Power and clock of every GPU over the first seconds of the first wave of power steps, as lines.

Pure: x is in hundredths of a second, y 0 (top) to 100 (bottom). All GPUs share a plot: the wave is
on all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.limit import number
from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.record import CheckStarted, Entry, Note
from acceptance.reports.page.curves import Plot

TABLE = "power_train"
# The table's columns, each with the rounding of its scale.
_COLUMNS = ("s", "W", "MHz")
_STEPS = (("power_w", "W", 50.0), ("sm_clock_mhz", "MHz", 100.0))
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
    for column, (metric, unit, rounding) in enumerate(_STEPS, start=1):
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
