"""A table on a terminal: columns as wide as needed, cells folded in a narrow window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from rich import table as rich_table
from rich.cells import cell_len
from rich.text import Text

from acceptance.reports import sparkline
from acceptance.reports.glyphs import ASCII, sentence
from acceptance.reports.lines import LineWriter
from acceptance.reports.report import Table, Tone

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


def show(table: Table, screen: LineWriter) -> None:
    """Print a table. Any text may come from outside."""
    signs, width = screen.signs, screen.console.width
    room = max(_LEAST, min(SERIES, width - _OTHERS)) if screen.watched else SERIES
    rows = [
        [sentence(cell, signs, _CELL) for cell in row.cells]
        + ([sparkline.line(row.values, room, plain=signs is ASCII)] if row.values else [])
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
