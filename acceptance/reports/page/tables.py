"""Tables from loads (matrix rates by size, say), merged as builders publish them.

There is one a GPU, with one column a format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acceptance.core.component import Component
from acceptance.core.evidence import Table
from acceptance.core.limit import number


@dataclass(frozen=True, slots=True)
class TextTable:
    """One table as text: `title`, the head, and rows of one cell per column."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def text_tables(tables: Iterable[Table]) -> tuple[TextTable, ...]:
    """Merge tables of one check and component that have the same first column.

    They are joined row by row; a missing cell is empty. A table with a repeated first cell stays by
    itself.
    """
    groups: dict[tuple[str, Component, str, str], list[Table]] = {}
    for table in tables:
        if table.columns:
            firsts = [row[0] for row in table.rows if row]
            alone = table.name if len(set(firsts)) < len(firsts) else ""
            groups.setdefault((table.check, table.component, table.columns[0], alone), []).append(
                table
            )
    return tuple(
        _beside(check, component, key, found) if not alone else _by_itself(found[0])
        for (check, component, key, alone), found in groups.items()
    )


def _by_itself(table: Table) -> TextTable:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    return TextTable(f"{table.check} on {table.component}: {table.name}", table.columns, rows)


def _beside(check: str, component: Component, key: str, tables: list[Table]) -> TextTable:
    first = list(dict.fromkeys(row[0] for table in tables for row in table.rows if row))
    first.sort(key=lambda cell: (isinstance(cell, str), cell))
    head = [key]
    columns: list[dict[float | str, float | str]] = []
    for table in tables:
        for place, name in enumerate(table.columns[1:], start=1):
            head.append(f"{table.name.removesuffix('_by_size')} {name}")
            columns.append({row[0]: row[place] for row in table.rows if len(row) > place})
    rows = tuple((_cell(one), *(_cell(column.get(one, "")) for column in columns)) for one in first)
    return TextTable(f"{check} on {component}", tuple(head), rows)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
