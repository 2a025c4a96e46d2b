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

Output without its last line comes from a load that died, whatever the other lines say. A line is
known by its first key in this list, has exactly the keys of its kind, and is a struct here; wrong
results are those of `miscompare`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TextIO

import msgspec
from msgspec import Meta, field

from acceptance.core.limit import UNITS
from acceptance.core.strict import Strict, Text
from acceptance.loads.miscompare import Miscompare, UnreadMiscompare, WrongResult, read_or_keep

VERSION = 1

Name = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]*\Z")]
# Printable ASCII without spaces: it becomes a key in the journal and in JUnit.
Component = Annotated[str, Meta(pattern=r"\A[!-~]+\Z")]


class Hello(Strict, frozen=True):
    """The first line: the load's name, and all parameters that affect it."""

    version: int = field(name="rigproof_load")
    load: Text
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise ValueError(f"its version is not {VERSION}, the only one known here")

    @property
    def injected(self) -> str | None:
        """The fault injected on purpose; a run with one can never pass."""
        kind = self.parameters.get("inject")
        return None if kind is None else str(kind)


class LoadReading(Strict, frozen=True):
    """One measured number, with its unit and its component."""

    name: Name = field(name="reading")
    unit: Text
    component: Component
    value: float

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"the unit {self.unit!r} is not one of {', '.join(sorted(UNITS))}")


class Absence(Strict, frozen=True):
    """A requested reading that this component does not have, and the reason."""

    name: Name = field(name="absent")
    component: Component
    reason: Text


class LoadTable(Strict, frozen=True):
    """A table of figures for information; no verdict depends on it.

    `columns` name their units, and every row has a cell for each.
    """

    name: Name = field(name="table")
    columns: Annotated[tuple[Text, ...], Meta(min_length=1)]
    rows: Annotated[tuple[tuple[float | Text, ...], ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("two columns have one name")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a row has not one cell for each column")


class Note(Strict, frozen=True):
    """A sentence for people."""

    text: Text = field(name="note")


class Progress(Strict, frozen=True):
    """How far the load is, in seconds; it carries no evidence."""

    done_s: float = field(name="progress")
    of_s: float = field(name="of")


class End(Strict, frozen=True):
    """The last line; `readings` counts absences and tables too."""

    end: bool
    readings: int


Evidence = LoadReading | Absence | LoadTable
Line = Hello | Evidence | WrongResult | Note | Progress | End

# The key that tells a line's kind.
_KINDS: Mapping[str, type[Hello | Evidence | Note | Progress | End]] = {
    "rigproof_load": Hello,
    "reading": LoadReading,
    "absent": Absence,
    "table": LoadTable,
    "note": Note,
    "progress": Progress,
    "end": End,
}


class ProtocolError(Exception):
    """The text is not the whole output of a load; the message quotes the line."""


@dataclass(frozen=True, slots=True)
class LoadOutput:
    """The whole output of a load, from its first line to its last."""

    load: str
    parameters: dict[str, Any]
    readings: tuple[LoadReading, ...]
    miscompares: tuple[Miscompare, ...]
    notes: tuple[str, ...]
    tables: tuple[LoadTable, ...] = ()
    absences: tuple[Absence, ...] = ()

    @property
    def injected(self) -> str | None:
        """The fault injected on purpose; a run with one can never pass."""
        return Hello(VERSION, self.load, self.parameters).injected


class _Evidence:
    """The readings, absences and tables of one output, in order of arrival."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], Evidence] = {}

    def add(self, one: Evidence) -> None:
        """Add one line; raises ValueError for a duplicate.

        A component cannot both have a reading and lack it.
        """
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

    Raises ProtocolError for what no reader could use, and ValueError for what comes twice or is not
    a finite number.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._evidence = _Evidence()

    def _line(self, line: Line) -> None:
        found = msgspec.to_builtins(line, str_keys=True)
        text = json.dumps(
            {"miscompare": found} if isinstance(line, Miscompare) else found, allow_nan=False
        )
        # A wrong result is written even where no reader could use it.
        if isinstance(said := decode(text), Evidence):
            self._evidence.add(said)
        self._stream.write(text + "\n")
        self._stream.flush()

    def hello(self, load: str, parameters: dict[str, Any]) -> None:
        """The first line: the name of the load, and all parameters that affect it."""
        self._line(Hello(VERSION, load, parameters))

    def reading(self, name: str, unit: str, component: str, value: float) -> None:
        """One measured number; a non-finite value or a unit outside the closed set is refused."""
        self._line(LoadReading(name, unit, component, value))

    def absent(self, name: str, component: str, reason: str) -> None:
        """A requested reading that this hardware does not have, with the reason."""
        self._line(Absence(name, component, reason))

    def table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[float | str]]
    ) -> None:
        """A table with at least one row, and a cell for each column."""
        self._line(LoadTable(name, tuple(columns), tuple(map(tuple, rows))))

    def miscompare(self, wrong: Miscompare) -> None:
        """One wrong result, with where and when it was found."""
        self._line(wrong)

    def note(self, said: str) -> None:
        """A sentence for people."""
        self._line(Note(said))

    def progress(self, done_s: float, of_s: float) -> None:
        """How far the load is, in seconds."""
        self._line(Progress(done_s, of_s))

    def end(self) -> None:
        """The last line; output without it does not count as a whole run."""
        self._line(End(end=True, readings=len(self._evidence.found)))


def decode(line: str) -> Line:
    """One line of a load.

    Raises ProtocolError, quoting the line, where it is not one whole JSON object of a known kind
    with exactly the keys of that kind, or a value is not as it must be. A wrong result that cannot
    be read is an UnreadMiscompare: what a load has found wrong is never lost.
    """
    record = _record(line)
    if record.keys() == {"miscompare"} and isinstance(record["miscompare"], dict):
        return read_or_keep(record["miscompare"])
    kind = next((kind for key, kind in _KINDS.items() if key in record), None)
    if kind is None:
        raise ProtocolError(_unusable("it is of no known kind", line))
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise ProtocolError(_unusable(str(error), line)) from None


def parse(output: str) -> LoadOutput:
    """Read the whole output of a load.

    Raises ProtocolError, quoting the line, where `decode` does, and in these cases: the first line
    is not the hello, or another one is; a wrong result cannot be read; a reading or a table comes
    twice; the end is missing or miscounts; a line follows the end.
    """
    if not output:
        raise ProtocolError("the load printed nothing")
    first, *others = output.removesuffix("\n").split("\n")
    hello = decode(first)
    if not isinstance(hello, Hello):
        raise ProtocolError(
            f"the load's output does not begin with its hello line but with {_quote(first)}"
        )
    evidence = _Evidence()
    miscompares: list[Miscompare] = []
    notes: list[str] = []
    for number, line in enumerate(others):
        said = decode(line)
        try:
            if isinstance(said, Evidence):
                evidence.add(said)
            elif isinstance(said, Miscompare):
                miscompares.append(said)
            elif isinstance(said, UnreadMiscompare):
                raise ValueError(f"its wrong result cannot be read ({said.reason})")
            elif isinstance(said, Note):
                notes.append(said.text)
            elif isinstance(said, Hello):
                raise ValueError("it is a second hello")
            elif isinstance(said, End):
                if said != End(end=True, readings=len(evidence.found)):
                    raise ValueError(
                        f"it does not close the {len(evidence.found)} readings before it"
                    )
                if number != len(others) - 1:
                    raise ProtocolError(
                        f"the load printed after its end: {_quote(others[number + 1])}"
                    )
                found = evidence.found.values()
                return LoadOutput(
                    hello.load,
                    hello.parameters,
                    tuple(one for one in found if isinstance(one, LoadReading)),
                    tuple(miscompares),
                    tuple(notes),
                    tuple(one for one in found if isinstance(one, LoadTable)),
                    tuple(one for one in found if isinstance(one, Absence)),
                )
        except ValueError as error:
            raise ProtocolError(_unusable(str(error), line)) from None
    raise ProtocolError(
        f"the load's output ends without its end line; the last line is "
        f"{_quote(others[-1] if others else first)}"
    )


def salvage(output: str) -> tuple[WrongResult, ...]:
    """The wrong results in incomplete output, read or not.

    A wrong result counts even if the load died afterwards. This evidence can only count against the
    machine, never make a run pass, so lines of another kind are skipped.
    """
    found: list[WrongResult] = []
    for line in output.split("\n"):
        try:
            said = decode(line)
        except ProtocolError:
            continue
        if isinstance(said, WrongResult):
            found.append(said)
    return tuple(found)


def _unusable(reason: str, line: str) -> str:
    return f"a line of the load's output cannot be used, {reason}: {_quote(line)}"


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
