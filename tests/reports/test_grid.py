"""A table on a terminal and in a file."""

from __future__ import annotations

from drawn import piped, watched

from acceptance.reports import report_terminal
from acceptance.reports.report import Row, Table

ROWS = [Row(("one", "a name that is long", "1.5")), Row(("another", "b", "1000"), "strong")]


def shown(table: Table, width: int | None = None) -> list[str]:
    terminal, out = piped() if width is None else watched(width)
    report_terminal.show_table(table, terminal)
    return out.getvalue().splitlines()


def test_columns_are_as_wide_as_they_must_be_and_numbers_stand_to_the_right() -> None:
    assert shown(Table(ROWS, ("what", "name", "value"), (2,))) == [
        "what     name                 value",
        "one      a name that is long    1.5",
        "another  b                     1000",
    ]
    assert "".join(shown(Table(()))).strip() == "", "no rows are no table"


def test_a_narrow_terminal_breaks_cells() -> None:
    lines = shown(Table(ROWS, numbers=(2,)), 20)
    assert len(lines) > 2
    assert all(len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) <= 20 for line in lines)


def test_a_cell_without_end_does_not_make_every_line_one() -> None:
    """Text is never markup, and one line is one."""
    rows = [Row(("x" * 100_000, "y")), Row(("[bold]z[/bold]\x1b[31m\nmore", "y"))]
    first, second = shown(Table(rows))
    assert ("more characters" in first, len(first) < 300) == (True, True)
    assert second.split() == ["[bold]z[/bold]", "more", "y"]
