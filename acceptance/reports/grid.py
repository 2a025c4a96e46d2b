"""A table on a terminal: columns as wide as needed, cells folded in a narrow window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acceptance.reports.glyphs import glyphs_for, sentence

_GAP = 2  # columns between two cells
_CELL = 200  # characters of a cell: an endless one would make every line endless


def show(
    console: Console,
    rows: Sequence[tuple[str, Sequence[str]]],
    *,
    head: Sequence[str] = (),
    right: int,
    watched: bool,
) -> None:
    """Print rows, each a style and its cells; columns from `right` on are right-aligned.

    Any text may come from outside.
    """
    signs = glyphs_for(console.encoding)
    texts = [[sentence(cell, signs, _CELL) for cell in cells] for _, cells in rows]
    names = [sentence(name, signs, _CELL) for name in head]
    widths = [max(map(cell_len, column)) for column in zip_longest(names, *texts, fillvalue="")]
    if watched and sum(widths) + _GAP * (len(widths) - 1) > console.width:
        _fold(console, [style for style, _ in rows], texts, names, right)
        return
    styles = ["bold"] * bool(head) + [style for style, _ in rows]
    for style, cells in zip(styles, [names, *texts] if head else texts, strict=True):
        line = Text()
        for place, (cell, width) in enumerate(zip(cells, widths, strict=False)):
            room = " " * (width - cell_len(cell))
            line.append(f"{room}{cell}" if place >= right else f"{cell}{room}", style)
            line.append(" " * _GAP)
        line.rstrip()
        console.print(line, soft_wrap=True)


def _fold(
    console: Console,
    styles: Sequence[str],
    rows: Sequence[Sequence[str]],
    head: Sequence[str],
    right: int,
) -> None:
    """Print rows that are wider than the window, which takes rich a millisecond a row."""
    table = Table(
        box=None,
        show_header=bool(head),
        padding=(0, _GAP, 0, 0),
        pad_edge=False,
        header_style="bold",
    )
    for place in range(max(map(len, rows), default=0)):
        name = Text(head[place]) if head else ""
        table.add_column(name, justify="right" if place >= right else "left", overflow="fold")
    for style, cells in zip(styles, rows, strict=True):
        table.add_row(*map(Text, cells), style=style or None)
    for line in console.render_lines(table, pad=False):
        text = Text().join(Text(segment.text, segment.style or "") for segment in line)
        text.rstrip()
        console.print(text, soft_wrap=True)
