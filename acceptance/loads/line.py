"""The lines of a load's output that carry evidence, each checked key by key for both its writer and its reader. Standard library only.

Every check raises ValueError, saying what cannot be used.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

UNITS = frozenset({"GB/s", "GFLOP/s", "TFLOP/s", "degC", "W", "MHz", "us", "ns", "s", "count", "ratio", "GiB"})
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COMPONENT = re.compile(r"[!-~]+")  # printable ASCII without spaces: it becomes a key in the journal and in JUnit


@dataclass(frozen=True, slots=True)
class LoadReading:
    """One number a load measured, with its unit and the component it belongs to."""

    name: str
    unit: str
    component: str
    value: float


@dataclass(frozen=True, slots=True)
class Absence:
    """A reading that was asked for and that this component does not have, and the reason: never a silence."""

    name: str
    component: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoadTable:
    """Figures that belong together; they decide nothing. `columns` name their units, and every row has a cell for each."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]


def reading(record: dict[str, Any]) -> LoadReading:
    """The reading of a line that has exactly its keys."""
    name, unit, component = _name(record["reading"]), text(record["unit"]), text(record["component"])
    if unit not in UNITS:
        raise ValueError(f"the unit {unit!r} is not one of {', '.join(sorted(UNITS))}")
    return LoadReading(name, unit, _component(component), number(record["value"]))


def absence(record: dict[str, Any]) -> Absence:
    """The absence of a line that has exactly its keys."""
    return Absence(_name(record["absent"]), _component(text(record["component"])), text(record["reason"]))


def table(record: dict[str, Any]) -> LoadTable:
    """The table of a line that has exactly its keys."""
    name, columns, rows = _name(record["table"]), record["columns"], record["rows"]
    if not isinstance(columns, list) or not columns or not isinstance(rows, list) or not rows:
        raise ValueError("the table has no columns or no rows")
    heads = tuple(text(column) for column in columns)
    if len(set(heads)) != len(heads):
        raise ValueError("two columns have one name")
    if not all(isinstance(row, list) and len(row) == len(heads) for row in rows):
        raise ValueError("a row has not one cell for each column")
    return LoadTable(name, heads, tuple(tuple(_cell(cell) for cell in row) for row in rows))


def number(value: object) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it has something else where a number belongs")
    if (
        not -sys.float_info.max <= value <= sys.float_info.max
    ):  # false for NaN; whole numbers may be too large for a float
        raise ValueError("the value is not a finite number")
    return float(value)


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("it has something else where a text belongs")
    return value


def details(value: object) -> dict[str, Any]:
    """What is known of a wrong result."""
    if not isinstance(value, dict) or not value:
        raise ValueError("the miscompare has no details")
    return value


def exactly(record: dict[str, Any], keys: frozenset[str]) -> None:
    """Nothing, when the record has these keys and no others."""
    if record.keys() != keys:
        raise ValueError(f"its keys are not {', '.join(sorted(keys))}")


def _name(value: object) -> str:
    name = text(value)
    if not _NAME.fullmatch(name):
        raise ValueError("the name is not in lower case letters, digits and underscores")
    return name


def _component(component: str) -> str:
    if not _COMPONENT.fullmatch(component):
        raise ValueError("the component is not a name without spaces")
    return component


def _cell(value: object) -> float | str:
    return text(value) if isinstance(value, str) else number(value)
