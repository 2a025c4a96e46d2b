"""The inventory that a journal recorded, decoded. A journal of any version can be read.

A value that is missing or has another shape is absent: None. A row of a list without the values
that identify the part is left out. Pure.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from acceptance.core.evidence import Observed
from acceptance.core.record import Entry
from acceptance.machine.inventory import Inventory


def inventory_of(entries: Sequence[Entry]) -> Inventory:
    """The observed machine before the run; NOTHING where the journal has no inventory."""
    return decode(next(_observed(entries), Observed({})).inventory)


def matrix_of(entries: Sequence[Entry]) -> tuple[tuple[str, ...], ...]:
    """How GPUs and network cards reach each other, as rows of cells; empty where not recorded."""
    return next(_observed(entries), Observed({})).matrix


def _observed(entries: Sequence[Entry]) -> Iterator[Observed]:
    return (entry.body for entry in entries if isinstance(entry.body, Observed))


def decode(plain: object) -> Inventory:
    """An inventory from the plain data of a journal."""
    found: Inventory = _field(plain, Inventory)
    return found


def _decoded(plain: object, kind: Any) -> Any:
    """The data as a value of this type, less what has another shape. Raises ValidationError."""
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError:
        if _is_table(kind) and isinstance(plain, Mapping):
            return kind(**{name: _field(plain.get(name), of) for name, of in _fields(kind).items()})
        tables = [part for part in get_args(kind) if _is_table(part)]
        if tables and get_origin(kind) is tuple and isinstance(plain, list | tuple):
            return tuple(row for _, row in _rows(enumerate(plain), tables[0]))
        if tables and get_origin(kind) is dict and isinstance(plain, Mapping):
            return dict(_rows(plain.items(), tables[0]))
        raise


def _rows(plain: Iterable[tuple[object, object]], table: Any) -> Iterator[tuple[object, Any]]:
    for name, row in plain:
        with contextlib.suppress(msgspec.ValidationError):
            yield name, _decoded(row, table)


def _field(plain: object, kind: Any) -> Any:
    """A field of this type; empty where it holds tables and the data has another shape.

    Raises ValidationError for a value that must not be absent.
    """
    optional = get_origin(kind) is types.UnionType
    try:
        return _decoded(plain, _known(kind) if optional else kind)
    except msgspec.ValidationError:
        if optional:
            return None
        if _is_table(kind) or get_origin(kind) is dict:
            return _decoded({}, kind)
        if any(map(_is_table, get_args(kind))):
            return ()
        raise


def _known(kind: Any) -> Any:
    """What an optional field holds where it is not absent."""
    return functools.reduce(operator.or_, (one for one in get_args(kind) if one is not NoneType))


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


@functools.cache
def _fields(kind: Any) -> Mapping[str, Any]:
    """The types of a table's fields, by name."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


NOTHING = decode({})
