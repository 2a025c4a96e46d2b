"""A table on a terminal and in a file."""

from __future__ import annotations

from test_terminal import piped, watched

from acceptance.reports import grid
from acceptance.reports.report import Row, Table

ROWS = [Row(("one", "a name that is long", "1.5")), Row(("another", "b", "1000"), "strong")]


def test_columns_are_as_wide_as_they_must_be_and_numbers_stand_to_the_right() -> None:
    terminal, out = piped()
    grid.show(Table(ROWS, ("what", "name", "value"), (2,)), terminal)
    assert out.getvalue().splitlines() == [
        "what     name                 value",
        "one      a name that is long    1.5",
        "another  b                     1000",
    ]


def test_a_narrow_terminal_breaks_cells() -> None:
    terminal, out = watched(20)
    grid.show(Table(ROWS, numbers=(2,)), terminal)
    lines = out.getvalue().splitlines()
    assert len(lines) > 2
    assert all(len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) <= 20 for line in lines)


def test_a_cell_without_end_does_not_make_every_line_one() -> None:
    terminal, out = piped()
    rows = [Row(("x" * 100_000, "y")), Row(("[bold]z[/bold]\x1b[31m\nmore", "y"))]
    grid.show(Table(rows), terminal)
    first, second = out.getvalue().splitlines()
    assert "more characters" in first
    assert len(first) < 300
    assert second.split() == ["[bold]z[/bold]", "more", "y"], (
        "text is never markup, and one line is one"
    )


def test_no_rows_are_no_table() -> None:
    terminal, out = piped()
    grid.show(Table(()), terminal)
    assert out.getvalue().strip() == ""
