"""The keys of a TOML file, from the type that it is read as, and the cure for a wrong one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from acceptance.core.nearest import nearest

Key = str | int
# A key of another table is suggested only where it is that key, or all but.
_ELSEWHERE = 0.8


def _table(kind: inspect.Type | None) -> inspect.StructType | None:
    """The table that a key holds, or each of the tables in its list; None where it holds none."""
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_table, kind.types)), None)
    if isinstance(kind, inspect.VarTupleType):
        kind = kind.item_type
    return kind if isinstance(kind, inspect.StructType) else None


def _is_list(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.VarTupleType)


def _header(path: Sequence[Key], kind: inspect.Type) -> str:
    """A table as it is begun in the file: `[cpu]`, `[[memory.dimm]]`."""
    name = ".".join(part for part in path if isinstance(part, str))
    return f"[[{name}]]" if _is_list(kind) else f"[{name}]"


def _fields(table: inspect.StructType) -> dict[str, inspect.Type]:
    return {field.encode_name: field.type for field in table.fields}


def _at(shape: type[Any], path: Sequence[Key]) -> inspect.Type | None:
    """The type at a key; None where the file has no such key."""
    kind: inspect.Type | None = inspect.type_info(shape)
    for part in path:
        if isinstance(part, str):  # of a list of tables `_table` has the type already
            table = _table(kind)
            kind = _fields(table).get(part) if table is not None else None
    return kind


def _everywhere(
    kind: inspect.Type, path: tuple[str, ...] = (), around: frozenset[type[Any]] = frozenset()
) -> Iterator[tuple[tuple[str, ...], str, inspect.Type]]:
    """Every key with the path of its table and its type; of a table within itself those outside."""
    if (table := _table(kind)) is not None and table.cls not in around:
        for name, one in _fields(table).items():
            yield path, name, one
            yield from _everywhere(one, (*path, name), around | {table.cls})


def _holds_tables(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    )


def _spelled(above: Sequence[Key], name: str, kind: inspect.Type) -> str:
    return name if _table(kind) is None else _header([*above, name], kind)


def unknown(shape: type[Any], path: Sequence[Key], value: Any) -> str | None:
    """The key that is meant by an unknown one, as a question; None where no key is near.

    `path` ends with the unknown key, which holds `value`.
    """
    *above, name = path
    tables = _holds_tables(value)
    table = _table(_at(shape, above))
    fields = _fields(table) if table is not None else {}
    own = {key: one for key, one in fields.items() if (_table(one) is not None) == tables}
    if near := nearest(str(name), own):
        return f"did you mean {_spelled(above, near[0], own[near[0]])}?"
    others: dict[str, list[str]] = {}
    for where, key, one in _everywhere(inspect.type_info(shape)):
        if (_table(one) is not None) == tables:
            of = _at(shape, where)
            others.setdefault(key, []).append(
                f"in {_header(where, of)}" if where and of else "before the first table"
            )
    return (
        f"did you mean {near[0]} {' or '.join(others[near[0]])}?"
        if (near := nearest(str(name), others, likeness=_ELSEWHERE))
        else None
    )


def choices(shape: type[Any], path: Sequence[Key]) -> tuple[str, ...]:
    """The words that a key may hold, where only some are allowed."""
    kind = _at(shape, path)
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return tuple(
        str(value) for one in kinds if isinstance(one, inspect.LiteralType) for value in one.values
    )


def misplaced(shape: type[Any], path: Sequence[Key], value: Any) -> str:
    """How to write what a key holds in a wrong form, as the end of a sentence.

    Empty where neither the key nor the value is of tables.
    """
    *above, name = path[:-1] if isinstance(path[-1], int) else path
    kind, around = _at(shape, [*above, name]), _table(_at(shape, above))
    if (
        isinstance(name, int)
        or around is None
        or kind is None
        or isinstance(kind, inspect.DictType)
    ):
        return ""
    required, given = _table(kind) is not None, _holds_tables(value)
    header = _header([*above, name], kind)
    if required and given:
        other = f"[{header}]" if not _is_list(kind) else header[1:-1]
        return f": write {header}, not {other}"
    near = nearest(
        name, [one for one in _fields(around) if one != name and _takes(around, one, value)]
    )
    meant = f": did you mean {_spelled(above, near[0], _fields(around)[near[0]])}?" if near else ""
    if not required:
        return meant if given else ""
    return f"{meant} {header} begins a table" if meant else f": begin a table with {header}"


def _takes(table: inspect.StructType, key: str, value: Any) -> bool:
    """Whether a key of a table may hold a value; of tables, whether it holds tables at all."""
    if _holds_tables(value) or _table(_fields(table)[key]) is not None:
        return _holds_tables(value) and _table(_fields(table)[key]) is not None
    of = next(one.type for one in msgspec.structs.fields(table.cls) if one.encode_name == key)
    try:
        msgspec.convert(value, of)
    except (msgspec.ValidationError, TypeError):
        return False
    return True
