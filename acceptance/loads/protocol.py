"""What a load of ours prints: one JSON object a line on standard output, and the strict reader of it.

    {"rigproof_load": 1, "load": NAME, "parameters": {...}}                                 first, once
    {"reading": NAME, "unit": UNIT, "component": COMPONENT, "value": NUMBER}                once for each name and component
    {"miscompare": {...what differed, where and when...}}                                   as soon as it is found
    {"note": TEXT}                                                                          for people
    {"progress": SECONDS_DONE, "of": SECONDS}                                               for a progress bar; carries no evidence
    {"end": true, "readings": COUNT}                                                        last, once

A text without its last line is that of a load that died, whatever it says before. Standard library only.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from typing import Any, TextIO

VERSION = 1
UNITS = frozenset({"GB/s", "GFLOP/s", "TFLOP/s", "degC", "W", "MHz", "us", "ns", "s", "count", "ratio", "GiB"})
_HELLO = frozenset({"rigproof_load", "load", "parameters"})
_KINDS = {  # the key that tells the kind of a line, and all keys it must have
    "reading": frozenset({"reading", "unit", "component", "value"}),
    "miscompare": frozenset({"miscompare"}),
    "note": frozenset({"note"}),
    "progress": frozenset({"progress", "of"}),
    "end": frozenset({"end", "readings"}),
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COMPONENT = re.compile(r"[!-~]+")  # printable ASCII without spaces: it becomes a key in the journal and in JUnit


class ProtocolError(Exception):
    """The text is not the whole output of a load; the message is one sentence and quotes the line."""


@dataclass(frozen=True, slots=True)
class LoadReading:
    """One number a load measured, with its unit and the component it belongs to."""

    name: str
    unit: str
    component: str
    value: float


@dataclass(frozen=True, slots=True)
class LoadOutput:
    """Everything a load said, from its first line to its last."""

    load: str
    parameters: dict[str, Any]
    readings: tuple[LoadReading, ...]
    miscompares: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]

    @property
    def injected(self) -> str | None:
        """The fault that was injected on purpose; a run with one can never be a pass."""
        kind = self.parameters.get("inject")
        return None if kind is None else str(kind)


class Output:
    """Writes the lines, flushing each, so that a load that dies leaves what it found; ValueError for what the reader would refuse."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._seen: set[tuple[str, str]] = set()

    def _line(self, record: dict[str, Any]) -> None:
        json.dumps(record, ensure_ascii=False).encode()  # raises for what is no text in UTF-8
        self._stream.write(json.dumps(record, allow_nan=False) + "\n")
        self._stream.flush()

    def hello(self, load: str, parameters: dict[str, Any]) -> None:
        """The first line: which load, and everything that decides what it does."""
        self._line({"rigproof_load": VERSION, "load": _text(load), "parameters": parameters})

    def reading(self, name: str, unit: str, component: str, value: float) -> None:
        """One measured number; a non-finite value or a unit outside the closed set is refused."""
        record = {"reading": name, "unit": unit, "component": component, "value": value}
        found = _reading(record)
        if (found.name, found.component) in self._seen:
            raise ValueError(f"{name} of {component} was given twice")
        self._seen.add((found.name, found.component))
        self._line(record)

    def miscompare(self, details: dict[str, Any]) -> None:
        """One wrong result, with where and when it was found."""
        self._line({"miscompare": _details(details)})

    def note(self, text: str) -> None:
        """A sentence for people."""
        self._line({"note": _text(text)})

    def progress(self, done_s: float, of_s: float) -> None:
        """How far the load is, in seconds."""
        self._line({"progress": _number(done_s), "of": _number(of_s)})

    def end(self) -> None:
        """The last line: without it nothing before counts as a whole run."""
        self._line({"end": True, "readings": len(self._seen)})


def parse(text: str) -> LoadOutput:
    """Read the whole output of a load.

    Raises ProtocolError, quoting the line, when the first line is not the hello of this version, a line is not an object of a known kind
    with exactly its keys, a reading comes twice or is not finite, the end is missing or miscounts, or anything follows the end.
    """
    if not text:
        raise ProtocolError("the load printed nothing")
    lines = text.removesuffix("\n").split("\n")
    load, parameters = _hello(lines[0])
    readings: dict[tuple[str, str], LoadReading] = {}
    miscompares: list[dict[str, Any]] = []
    notes: list[str] = []
    for index, line in enumerate(lines[1:], start=1):
        record = _record(line)
        kind = next((kind for kind in _KINDS if kind in record), None)
        try:
            if kind is None:
                raise ValueError("it is of no known kind")
            _exactly(record, _KINDS[kind])
            if kind == "reading":
                reading = _reading(record)
                if (reading.name, reading.component) in readings:
                    raise ValueError(f"{reading.name} of {reading.component} comes twice")
                readings[reading.name, reading.component] = reading
            elif kind == "miscompare":
                miscompares.append(_details(record["miscompare"]))
            elif kind == "note":
                notes.append(_text(record["note"]))
            elif kind == "progress":
                _number(record["progress"])
                _number(record["of"])
            else:
                _end(record, len(readings))
                if index != len(lines) - 1:
                    raise ProtocolError(f"the load printed after its end: {_quote(lines[index + 1])}")
                return LoadOutput(load, parameters, tuple(readings.values()), tuple(miscompares), tuple(notes))
        except ValueError as error:
            raise ProtocolError(f"a line of the load's output cannot be used, {error}: {_quote(line)}") from None
    raise ProtocolError(f"the load's output ends without its end line; the last line is {_quote(lines[-1])}")


def salvage(text: str) -> tuple[dict[str, Any], ...]:
    """The miscompares that can be read from a text that is not whole.

    A load that found a wrong result and then died has still found it. This is evidence against the machine only: nothing that is read
    here can make a run good, so a line that cannot be read is left out.
    """
    found = []
    for line in text.split("\n"):
        try:
            record = _record(line)
            _exactly(record, _KINDS["miscompare"])
            found.append(_details(record["miscompare"]))
        except (ProtocolError, ValueError):
            continue
    return tuple(found)


def _hello(line: str) -> tuple[str, dict[str, Any]]:
    record = _record(line)
    if "rigproof_load" not in record:
        raise ProtocolError(f"the load's output does not begin with its hello line but with {_quote(line)}")
    version = record["rigproof_load"]
    if type(version) is not int or version != VERSION:
        raise ProtocolError(
            f"the load's output has a version that is not {VERSION}, the only one known here: {_quote(line)}"
        )
    try:
        _exactly(record, _HELLO)
        name, parameters = _text(record["load"]), record["parameters"]
        if not isinstance(parameters, dict):
            raise ValueError("its parameters are not an object")
    except ValueError as error:
        raise ProtocolError(f"the load's hello line cannot be used, {error}: {_quote(line)}") from None
    return name, parameters


def _end(record: dict[str, Any], readings: int) -> None:
    count = record["readings"]
    if record["end"] is not True or type(count) is not int or count != readings:
        raise ValueError(f"it does not close the {readings} readings before it")


def _reading(record: dict[str, Any]) -> LoadReading:
    name, unit, component = _text(record["reading"]), _text(record["unit"]), _text(record["component"])
    if not _NAME.fullmatch(name):
        raise ValueError("the reading's name is not in lower case letters, digits and underscores")
    if unit not in UNITS:
        raise ValueError(f"the unit {unit!r} is not one of {', '.join(sorted(UNITS))}")
    if not _COMPONENT.fullmatch(component):
        raise ValueError("the component is not a name without spaces")
    return LoadReading(name, unit, component, _number(record["value"]))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("it has something else where a number belongs")
    if (
        not -sys.float_info.max <= value <= sys.float_info.max
    ):  # false for NaN; whole numbers may be too large for a float
        raise ValueError("the value is not a finite number")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("it has something else where a text belongs")
    return value


def _details(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise ValueError("the miscompare has no details")
    return value


def _exactly(record: dict[str, Any], keys: frozenset[str]) -> None:
    if record.keys() != keys:
        raise ValueError(f"its keys are not {', '.join(sorted(keys))}")


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_unique)
        # Refuses NaN and infinity, and a lone surrogate, which would stop whoever writes the text to a file.
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ProtocolError(f"a line of the load's output is not one whole JSON object: {_quote(line)}")
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key comes twice")
    return record


def _quote(line: str) -> str:
    return repr(line if len(line) <= 200 else line[:200] + " ...")
