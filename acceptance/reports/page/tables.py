"""Tables from loads (matrix rates by size, say), merged as builders publish them.

There is one a GPU, with one column a format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acceptance.core import evidence
from acceptance.core.language import ENGLISH, Language
from acceptance.core.limit import number
from acceptance.core.parts import Component
from acceptance.reports.report import Row, Table

MOST_ROWS = 60  # of one table; the journal has all


def text_tables(
    tables: Iterable[evidence.Table], language: Language = ENGLISH
) -> tuple[Table, ...]:
    """Merge tables of one check and component that have the same first column.

    They are joined row by row; a missing cell is empty. A table with a repeated first cell stays by
    itself.
    """
    groups: dict[tuple[str, Component, str, str], list[evidence.Table]] = {}
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


def _by_itself(table: evidence.Table, language: Language) -> Table:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    title = language(
        "{label}: {text}", label=_title(table.check, table.component, language), text=table.name
    )
    return _table(title, table.columns, rows)


def _title(check: str, component: Component, language: Language) -> str:
    return language("{check} on {component}", check=check, component=str(component))


def _beside(
    check: str, component: Component, key: str, tables: list[evidence.Table], language: Language
) -> Table:
    first = list(dict.fromkeys(row[0] for table in tables for row in table.rows if row))
    first.sort(key=lambda cell: (isinstance(cell, str), cell))
    head = [key]
    columns: list[dict[float | str, float | str]] = []
    for table in tables:
        for place, name in enumerate(table.columns[1:], start=1):
            head.append(f"{table.name.removesuffix('_by_size')} {name}")
            columns.append({row[0]: row[place] for row in table.rows if len(row) > place})
    rows = tuple((_cell(one), *(_cell(column.get(one, "")) for column in columns)) for one in first)
    return _table(_title(check, component, language), head, rows)


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    numbers = range(len(head))
    return Table([*map(Row, rows)], head, numbers, -1, title, MOST_ROWS)


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else number(value)
