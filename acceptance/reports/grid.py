"""A table on a terminal: columns as wide as needed, cells folded in a narrow window."""

from __future__ import annotations

from rich import table as rich_table
from rich.text import Text

from acceptance.reports import sparkline
from acceptance.reports.glyphs import ASCII, sentence
from acceptance.reports.lines import LineWriter
from acceptance.reports.report import Table, Tone

_WIDE = 10_000  # columns of a file, in which nothing is folded
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
    console, signs = screen.console, screen.signs
    room = max(_LEAST, min(SERIES, console.width - _OTHERS)) if screen.watched else SERIES
    grid = rich_table.Table(
        box=None,
        show_header=bool(table.head),
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    rows = [
        (
            [*row.cells, sparkline.line(row.values, room, plain=signs is ASCII)]
            if row.values
            else row.cells,
            STYLES[row.tone],
        )
        for row in table.rows
    ]
    for place in range(max((len(cells) for cells, _ in rows), default=0)):
        name = Text(sentence(table.head[place], signs, _CELL)) if table.head else ""
        right = place in table.numbers
        grid.add_column(name, justify="right" if right else "left", overflow="fold")
    for cells, style in rows:
        grid.add_row(*(Text(sentence(cell, signs, _CELL)) for cell in cells), style=style or None)
    wide = console.options if screen.watched else console.options.update_width(_WIDE)
    for line in console.render_lines(grid, wide, pad=False):
        text = Text().join(Text(segment.text, segment.style or "") for segment in line)
        text.rstrip()
        screen.put(text)
