"""Tables from loads (matrix rates by size, say), merged as builders publish them.

There is one a GPU, with one column a format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acceptance.core.evidence import Table
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.parts import Component


@dataclass(frozen=True, slots=True)
class TextTable:
    """One table as text: `title`, the head, and rows of one cell per column."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def text_tables(tables: Iterable[Table], language: Language = ENGLISH) -> tuple[TextTable, ...]:
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
        _beside(check, component, key, found, language)
        if not alone
        else _by_itself(found[0], language)
        for (check, component, key, alone), found in groups.items()
    )


def _by_itself(table: Table, language: Language) -> TextTable:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    title = language(
        "{label}: {text}", label=_title(table.check, table.component, language), text=table.name
    )
    return TextTable(title, table.columns, rows)


def _title(check: str, component: Component, language: Language) -> str:
    return language("{check} on {component}", check=check, component=str(component))


def _beside(
    check: str, component: Component, key: str, tables: list[Table], language: Language
) -> TextTable:
    first = list(dict.fromkeys(row[0] for table in tables for row in table.rows if row))
    first.sort(key=lambda cell: (isinstance(cell, str), cell))
    head = [key]
    columns: list[dict[float | str, float | str]] = []
    for table in tables:
        for place, name in enumerate(table.columns[1:], start=1):
            head.append(f"{table.name.removesuffix('_by_size')} {name}")
            columns.append({row[0]: row[place] for row in table.rows if len(row) > place})
    rows = tuple((_cell(one), *(_cell(column.get(one, "")) for column in columns)) for one in first)
    return TextTable(_title(check, component, language), tuple(head), rows)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
