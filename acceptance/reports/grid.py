"""A table on a terminal: columns as wide as needed, cells folded in a narrow window."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from acceptance.reports.glyphs import glyphs_for, sentence

_WIDE = 10_000  # columns of a file, in which nothing is folded
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
    table = Table(
        box=None, show_header=bool(head), padding=(0, 2, 0, 0), pad_edge=False, header_style="bold"
    )
    signs = glyphs_for(console.encoding)
    columns = max((len(cells) for _, cells in rows), default=0)
    for place in range(columns):
        name = Text(sentence(head[place], signs, _CELL)) if head else ""
        table.add_column(name, justify="right" if place >= right else "left", overflow="fold")
    for style, cells in rows:
        table.add_row(*(Text(sentence(cell, signs, _CELL)) for cell in cells), style=style or None)
    lines = console.render_lines(
        table, console.options if watched else console.options.update_width(_WIDE), pad=False
    )
    for line in lines:
        text = Text().join(Text(segment.text, segment.style or "") for segment in line)
        text.rstrip()
        console.print(text, soft_wrap=True)
