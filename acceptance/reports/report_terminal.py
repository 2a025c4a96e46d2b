"""A report on the terminal; its closing line comes last.

A table on a terminal: columns as wide as needed, cells folded in a narrow window.

Values over nights as one line of letters, each the median of some consecutive nights.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from rich import table as rich_table
from rich.cells import cell_len
from rich.text import Text

from acceptance.core.language import ENGLISH, Language
from acceptance.reports.lines import HANG, LineWriter
from acceptance.reports.report import Answer, Items, Line, Part, Picture, Plots, Report, Table, Tone
from acceptance.reports.text import ASCII, sentence

_DRAWN = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_PLAIN = "_.-=+*#@"


def sparkline(values: Sequence[float], width: int, *, plain: bool) -> str:
    """One letter per value, at most `width`, scaled from the least value to the largest.

    Equal values give a line in the middle. `plain` is for a terminal that cannot draw blocks.
    """
    letters = _PLAIN if plain else _DRAWN
    count = min(len(values), width)
    parts = (
        values[len(values) * n // count : len(values) * (n + 1) // count] for n in range(count)
    )
    # halved, so that no difference overflows
    cells = [statistics.median_low(part) / 2 for part in parts]
    low, high = min(cells, default=0.0), max(cells, default=0.0)
    if low == high:
        return letters[3] * count
    return "".join(letters[min(7, int(8 * ((cell - low) / (high - low))))] for cell in cells)


_GAP = 2  # columns between two cells
_CELL = 200  # characters of a cell: an endless one would make every line endless
# Letters of a series if there is room, columns of all other cells, and the shortest useful series.
SERIES, _OTHERS, _LEAST = 30, 90, 8
STYLES: dict[Tone, str] = {
    "": "",
    "strong": "bold",
    "good": "green",
    "bad": "bold red",
    "other": "yellow",
    "soft": "",
}


def show_table(table: Table, screen: LineWriter) -> None:
    """Print a table. Any text may come from outside."""
    signs, width = screen.signs, screen.console.width
    room = max(_LEAST, min(SERIES, width - _OTHERS)) if screen.watched else SERIES
    rows = [
        [sentence(cell, signs, _CELL) for cell in row.cells]
        + ([sparkline(row.values, room, plain=signs is ASCII)] if row.values else [])
        for row in table.rows
    ]
    head = [sentence(name, signs, _CELL) for name in table.head]
    styles = [STYLES[row.tone] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip_longest(head, *rows, fillvalue="")]
    if screen.watched and sum(widths) + _GAP * (len(widths) - 1) > width:
        _fold(head, rows, styles, table, screen)
        return
    if head:
        rows, styles = [head, *rows], ["bold", *styles]
    for cells, style in zip(rows, styles, strict=True):
        line = Text()
        for place, (cell, wide) in enumerate(zip(cells, widths, strict=False)):
            blank = " " * (wide - cell_len(cell))
            line.append(f"{blank}{cell}" if place in table.numbers else f"{cell}{blank}", style)
            line.append(" " * _GAP)
        line.rstrip()
        screen.put(line)


def _fold(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[str],
    table: Table,
    screen: LineWriter,
) -> None:
    """Print rows that are wider than the window, which takes rich a millisecond a row."""
    grid = rich_table.Table(
        box=None,
        show_header=bool(head),
        padding=(0, _GAP, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    for place in range(max((len(cells) for cells in rows), default=0)):
        justify: Literal["left", "right"] = "right" if place in table.numbers else "left"
        grid.add_column(Text(head[place]) if head else "", justify=justify, overflow="fold")
    for cells, style in zip(rows, styles, strict=True):
        grid.add_row(*map(Text, cells), style=style or None)
    for line in screen.console.render_lines(grid, pad=False):
        text = Text().join(Text(segment.text, segment.style or "") for segment in line)
        text.rstrip()
        screen.put(text)


MOST = 20  # lines of a list


def show(report: Report, screen: LineWriter, language: Language = ENGLISH) -> None:
    """Print a report."""
    for place, section in enumerate(report.sections):
        if place:
            screen.say("")
        if section.title:
            screen.say(section.title, f"bold {STYLES[section.tone]}")
        for part in section.parts:
            _show(part, screen, language)
    if report.closing is not None:
        screen.say(report.closing.text, f"bold {STYLES[report.closing.tone]}")


def _show(part: Part, screen: LineWriter, language: Language) -> None:
    match part:
        case Line(text, _, True):
            screen.path(text)
        case Line(text, tone):
            screen.say(text, STYLES[tone])
        case Table():
            show_table(part, screen)
        case Answer(title, text, details):
            screen.say(language("{label}: {text}", label=title, text=text))
            screen.say_all(details, indent=HANG)
        case Plots():
            show_table(part.table, screen)
            screen.say_all(part.notes)
        case Items(lines) | Picture(instead=lines):
            screen.say_all(lines[:MOST], indent=2)
            if (rest := len(lines) - MOST) > 0:
                screen.say(language.ngettext("and {n} more", "and {n} more", rest), indent=2)
