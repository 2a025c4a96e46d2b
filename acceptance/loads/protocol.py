"""The output of our loads, one JSON object a line on standard output, and its strict reader.

    {"rigproof_load": 1, "load": NAME, "parameters": {...}}
        first, once
    {"reading": NAME, "unit": UNIT, "component": COMPONENT, "value": NUMBER}
        once for each name and component
    {"absent": NAME, "component": COMPONENT, "reason": TEXT}
        a reading that this hardware does not have
    {"table": NAME, "columns": [TEXT, ...], "rows": [[CELL, ...], ...]}
        once for each name; a cell is a number or a text
    {"miscompare": {...what differed, where and when...}}
        as soon as it is found
    {"note": TEXT}
        for people
    {"progress": SECONDS_DONE, "of": SECONDS}
        for a progress bar; carries no evidence
    {"end": true, "readings": COUNT}
        last, once; counts absences and tables too

Output without its last line comes from a load that died, whatever the other lines say. Standard
library only.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO

UNITS = frozenset(
    {"GB/s", "GFLOP/s", "TFLOP/s", "degC", "W", "MHz", "us", "ns", "s", "count", "ratio", "GiB"}
)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# printable ASCII without spaces: it becomes a key in the journal and in JUnit
_COMPONENT = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class LoadReading:
    """One measured number, with its unit and its component."""

    name: str
    unit: str
    component: str
    value: float


@dataclass(frozen=True, slots=True)
class Absence:
    """A requested reading that this component does not have, and the reason."""

    name: str
    component: str
    reason: str


@dataclass(frozen=True, slots=True)
class LoadTable:
    """A table of figures for information; no verdict depends on it.

    `columns` name their units, and every row has a cell for each.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]


def reading(record: dict[str, Any]) -> LoadReading:
    """The reading of a line whose keys have been checked."""
    name, unit, component = (
        _name(record["reading"]),
        text(record["unit"]),
        text(record["component"]),
    )
    if unit not in UNITS:
        raise ValueError(f"the unit {unit!r} is not one of {', '.join(sorted(UNITS))}")
    return LoadReading(name, unit, _component(component), number(record["value"]))


def absence(record: dict[str, Any]) -> Absence:
    """The absence of a line whose keys have been checked."""
    return Absence(
        _name(record["absent"]), _component(text(record["component"])), text(record["reason"])
    )


def table(record: dict[str, Any]) -> LoadTable:
    """The table of a line whose keys have been checked."""
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
    """The value as a float; ValueError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it has something else where a number belongs")
    if (
        not -sys.float_info.max <= value <= sys.float_info.max
    ):  # false for NaN; whole numbers may be too large for a float
        raise ValueError("the value is not a finite number")
    return float(value)


def text(value: object) -> str:
    """The value as a text; ValueError unless it is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("it has something else where a text belongs")
    return value


def details(value: object) -> dict[str, Any]:
    """The details of a miscompare; ValueError unless it is an object that is not empty."""
    if not isinstance(value, dict) or not value:
        raise ValueError("the miscompare has no details")
    return value


def exactly(record: dict[str, Any], keys: frozenset[str]) -> None:
    """Raise ValueError unless the record has these keys and no others."""
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


VERSION = 1
_HELLO = frozenset({"rigproof_load", "load", "parameters"})
_KINDS = {  # the key that identifies the kind of a line, and all keys it must have
    "reading": frozenset({"reading", "unit", "component", "value"}),
    "absent": frozenset({"absent", "component", "reason"}),
    "table": frozenset({"table", "columns", "rows"}),
    "miscompare": frozenset({"miscompare"}),
    "note": frozenset({"note"}),
    "progress": frozenset({"progress", "of"}),
    "end": frozenset({"end", "readings"}),
}


class ProtocolError(Exception):
    """The text is not the whole output of a load; the message quotes the line."""


@dataclass(frozen=True, slots=True)
class LoadOutput:
    """The whole output of a load, from its first line to its last."""

    load: str
    parameters: dict[str, Any]
    readings: tuple[LoadReading, ...]
    miscompares: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    tables: tuple[LoadTable, ...] = ()
    absences: tuple[Absence, ...] = ()

    @property
    def injected(self) -> str | None:
        """The fault injected on purpose; a run with one can never pass."""
        kind = self.parameters.get("inject")
        return None if kind is None else str(kind)


class _Evidence:
    """The readings, absences and tables of one output, in order of arrival.

    Raises ValueError for a duplicate.
    """

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], LoadReading | Absence | LoadTable] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Add one line. A component cannot both have a reading and lack it."""
        one = (
            reading(record)
            if "reading" in record
            else absence(record)
            if "absent" in record
            else table(record)
        )
        key = ("table", one.name) if isinstance(one, LoadTable) else (one.name, one.component)
        if key in self.found:
            what = (
                f"the table {one.name}"
                if isinstance(one, LoadTable)
                else f"{one.name} of {one.component}"
            )
            raise ValueError(f"{what} comes twice")
        self.found[key] = one


class Output:
    """Writes the lines and flushes each, so that a load that dies leaves its findings behind.

    Raises ValueError for whatever the reader would refuse.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._evidence = _Evidence()

    def _line(self, record: dict[str, Any]) -> None:
        json.dumps(record, ensure_ascii=False).encode()  # raises for text that is not valid UTF-8
        self._stream.write(json.dumps(record, allow_nan=False) + "\n")
        self._stream.flush()

    def _proof(self, record: dict[str, Any]) -> None:
        self._evidence.add(record)
        self._line(record)

    def hello(self, load: str, parameters: dict[str, Any]) -> None:
        """The first line: the name of the load, and all parameters that affect it."""
        self._line({"rigproof_load": VERSION, "load": text(load), "parameters": parameters})

    def reading(self, name: str, unit: str, component: str, value: float) -> None:
        """One measured number; a non-finite value or a unit outside the closed set is refused."""
        self._proof({"reading": name, "unit": unit, "component": component, "value": value})

    def absent(self, name: str, component: str, reason: str) -> None:
        """A requested reading that this hardware does not have, with the reason."""
        self._proof({"absent": name, "component": component, "reason": reason})

    def table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[float | str]]
    ) -> None:
        """A table with at least one row, and a cell for each column."""
        self._proof({"table": name, "columns": list(columns), "rows": [list(row) for row in rows]})

    def miscompare(self, miscompare: dict[str, Any]) -> None:
        """One wrong result, with where and when it was found."""
        self._line({"miscompare": details(miscompare)})

    def note(self, said: str) -> None:
        """A sentence for people."""
        self._line({"note": text(said)})

    def progress(self, done_s: float, of_s: float) -> None:
        """How far the load is, in seconds."""
        self._line({"progress": number(done_s), "of": number(of_s)})

    def end(self) -> None:
        """The last line; output without it does not count as a whole run."""
        self._line({"end": True, "readings": len(self._evidence.found)})


def parse(output: str) -> LoadOutput:
    """Read the whole output of a load.

    Raises ProtocolError, quoting the line, in these cases: the first line is not the hello of this
    version; a line is not an object of a known kind with exactly its keys; a reading or a table
    comes twice or holds a value that is not finite; the end is missing or miscounts; a line follows
    the end.
    """
    if not output:
        raise ProtocolError("the load printed nothing")
    lines = output.removesuffix("\n").split("\n")
    load, parameters = _hello(lines[0])
    evidence = _Evidence()
    miscompares: list[dict[str, Any]] = []
    notes: list[str] = []
    for index, line in enumerate(lines[1:], start=1):
        record = _record(line)
        kind = next((kind for kind in _KINDS if kind in record), None)
        try:
            if kind is None:
                raise ValueError("it is of no known kind")
            exactly(record, _KINDS[kind])
            if kind in ("reading", "absent", "table"):
                evidence.add(record)
            elif kind == "miscompare":
                miscompares.append(details(record["miscompare"]))
            elif kind == "note":
                notes.append(text(record["note"]))
            elif kind == "progress":
                number(record["progress"])
                number(record["of"])
            else:
                _end(record, len(evidence.found))
                if index != len(lines) - 1:
                    raise ProtocolError(
                        f"the load printed after its end: {_quote(lines[index + 1])}"
                    )
                found = evidence.found.values()
                return LoadOutput(
                    load,
                    parameters,
                    tuple(one for one in found if isinstance(one, LoadReading)),
                    tuple(miscompares),
                    tuple(notes),
                    tuple(one for one in found if isinstance(one, LoadTable)),
                    tuple(one for one in found if isinstance(one, Absence)),
                )
        except ValueError as error:
            raise ProtocolError(
                f"a line of the load's output cannot be used, {error}: {_quote(line)}"
            ) from None
    raise ProtocolError(
        f"the load's output ends without its end line; the last line is {_quote(lines[-1])}"
    )


def salvage(output: str) -> tuple[dict[str, Any], ...]:
    """The miscompares that can be read from incomplete output.

    A wrong result counts even if the load died afterwards. This evidence can only count against the
    machine, never make a run pass, so unreadable lines are skipped.
    """
    found = []
    for line in output.split("\n"):
        try:
            record = _record(line)
            exactly(record, _KINDS["miscompare"])
            found.append(details(record["miscompare"]))
        except (ProtocolError, ValueError):
            continue
    return tuple(found)


def _hello(line: str) -> tuple[str, dict[str, Any]]:
    record = _record(line)
    if "rigproof_load" not in record:
        raise ProtocolError(
            f"the load's output does not begin with its hello line but with {_quote(line)}"
        )
    version = record["rigproof_load"]
    if type(version) is not int or version != VERSION:
        raise ProtocolError(
            f"the load's output has a version that is not {VERSION}, the only one known "
            f"here: {_quote(line)}"
        )
    try:
        exactly(record, _HELLO)
        name, parameters = text(record["load"]), record["parameters"]
        if not isinstance(parameters, dict):
            raise ValueError("its parameters are not an object")
    except ValueError as error:
        raise ProtocolError(
            f"the load's hello line cannot be used, {error}: {_quote(line)}"
        ) from None
    return name, parameters


def _end(record: dict[str, Any], evidence: int) -> None:
    count = record["readings"]
    if record["end"] is not True or type(count) is not int or count != evidence:
        raise ValueError(f"it does not close the {evidence} readings before it")


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_unique)
        # Refuses NaN and infinity, and a lone surrogate, which could not be written to a file.
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ProtocolError(
            f"a line of the load's output is not one whole JSON object: {_quote(line)}"
        )
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key comes twice")
    return record


def _quote(line: str) -> str:
    return repr(line if len(line) <= 200 else line[:200] + " ...")
