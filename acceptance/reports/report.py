"""A report as one value: texts, tables and plots in the order in which they are read.

Each report is made by one function, and drawn by one renderer on a terminal (`report_terminal`) and
by one on a page (`page.report_page`). A part has all that either has room for: a page draws plots
and small print, a terminal prints a series as a line of letters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from acceptance.reports.page.trends import TrendPlot

NONE = "-"  # an empty cell
Tone = Literal["", "strong", "good", "bad", "other", "soft"]


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence; one that is `exact`, such as a path or a command, is never broken."""

    text: str
    tone: Tone = ""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list that may be endless: its first lines are shown, and how many there are more."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer below its title; `details` say where it comes from."""

    title: str
    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    `below` is small print by the place of its cell, for a page. `values` are a series, which a
    terminal draws in a last cell.
    """

    cells: Sequence[str]
    tone: Tone = ""
    below: Mapping[int, str] = field(default_factory=dict)
    values: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the columns of `numbers` are aligned to the right.

    `mark` is the cell that has a row's tone on a page. Without a `head` a table is no more than
    names and texts. A page shows the first `most` rows, and says how many there are more in the
    journal.
    """

    rows: Sequence[Row]
    head: Sequence[str] = ()
    numbers: Collection[int] = ()
    mark: int = 0
    title: str = ""
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """The plot of a table's row, with what is said of it; `group` is the heading above it."""

    group: str
    name: str
    serial: str
    about: str
    plot: TrendPlot
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Plots:
    """A table on a terminal, a figure for each of its rows on a page.

    `constant` are the rows without a figure, counts that never changed. `width` is the number of
    places of each plot, `ends` are the two of its time. `notes` are for a terminal.
    """

    table: Table
    figures: Sequence[Figure]
    constant: Table
    width: int
    ends: tuple[str, str]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """What a page draws by a template of its own; `instead` is shown where nothing can be drawn."""

    template: str
    values: Mapping[str, object]
    instead: Sequence[str] = ()


Part = Line | Items | Answer | Table | Plots | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """Parts below a heading; without a title they follow what stands above."""

    title: str
    parts: Sequence[Part]
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its title, its sections, and one line that says what it comes to.

    That is the last one on a terminal, where the eye is, and the heading of a page.
    """

    title: str
    sections: Sequence[Section]
    closing: Line | None = None
