"""The output of our loads, one JSON object a line on standard output, and its strict reader.

    {"rigproof_load": 1, "load": NAME, "parameters": {...}}
        first, once
    {"reading": NAME, "unit": UNIT, "component": COMPONENT, "value": NUMBER}
        once for each name and component
    {"absent": NAME, "component": COMPONENT, "reason": MESSAGE}
        a reading that this hardware does not have; a text in older output
    {"table": NAME, "columns": [TEXT, ...], "rows": [[CELL, ...], ...]}
        once for each name; a cell is a number or a text
    {"log": NAME, "component": COMPONENT, "text": TEXT}
        what a library wrote to a log of its own, whole; once for each name and component
    {"miscompare": {...what differed, where and when...}}
        as soon as it is found
    {"note": TEXT}
        for people
    {"lap": NUMBER, "laps": COUNT, "done": SECONDS_DONE, "formats": [
            {"format": NAME, "rate": TFLOP_PER_S, "right": COUNT, "wrong": COUNT}, ...]}
        what a burn has proved at the end of each lap
    {"step": STEP, "begins": SECONDS_SINCE_BOOT}
        a step of the power load, before it begins
    {"step_ended": STEP, "edges": COUNT, "right": COUNT, "wrong": COUNT}
        the same step after its last edge: what was commanded, and how many results were verified
    {"waits": TURN}
        the turn among several loads that it waits for; nothing of it runs until the next line
    {"progress": SECONDS_DONE, "of": SECONDS}
        for a progress bar; carries no evidence
    {"trouble": MESSAGE}
        last of a load that could not go on, instead of the end
    {"end": true, "readings": COUNT}
        last, once; counts absences, tables and logs too

Output without its last line comes from a load that died, whatever the other lines say. A line is
known by its first key in this list, has exactly the keys of its kind, and is a struct here; wrong
results are those of `miscompare`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TextIO

import msgspec
from msgspec import Meta, field

from acceptance.core import parts, plain_text
from acceptance.core.limit import UNITS
from acceptance.core.message import Coded, Listed, Message, english
from acceptance.core.parts import Component, Named
from acceptance.core.strict import Strict, Text
from acceptance.loads.miscompare import (
    BootSeconds,
    Miscompare,
    UnreadMiscompare,
    UnusableLine,
    WrongResult,
    read_or_keep,
    why,
)
from acceptance.loads.power_step import Step

VERSION = 1
HEARTBEAT_S = 5.0  # between two lines of progress

Name = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]*\Z")]
# Bounds keep what a malfunctioning load says of a lap short.
Count = Annotated[int, Meta(ge=0, le=10**12)]
Number = Annotated[int, Meta(ge=1, le=10**12)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e9)]
Format = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9_]{0,15}\Z")]


class Hello(Strict, frozen=True):
    """The first line: the load's name, and all parameters that affect it."""

    version: int = field(name="rigproof_load")
    load: Text
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        if self.version != VERSION:
            raise UnusableLine(
                english("load_version", "its version is not {version}, the only one known here"),
                version=VERSION,
            )

    @property
    def injected(self) -> str | None:
        """The fault injected on purpose; a run with one can never pass."""
        kind = self.parameters.get("inject")
        return None if kind is None else str(kind)


def _require_known(component: Component) -> None:
    """Raise UnusableLine for a component of no kind that a load measures."""
    if isinstance(component, Named):
        raise UnusableLine(
            english("load_component", "'{component}' is no component that a load measures"),
            component=str(component),
        )


class LoadReading(Strict, frozen=True):
    """One measured number, with its unit and its component."""

    name: Name = field(name="reading")
    unit: Text
    component: Component
    value: float

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            units = Listed(tuple(sorted(UNITS)))
            raise UnusableLine(
                english("load_unit_unknown", "the unit {unit} is not one of {units}"),
                unit=repr(self.unit),
                units=units,
            )
        _require_known(self.component)


class Absence(Strict, frozen=True):
    """A requested reading that this component does not have, and the reason."""

    name: Name = field(name="absent")
    component: Component
    reason: Text | Message

    def __post_init__(self) -> None:
        _require_known(self.component)


class LoadTable(Strict, frozen=True):
    """A table of figures for information; no verdict depends on it.

    `columns` name their units, and every row has a cell for each.
    """

    name: Name = field(name="table")
    columns: Annotated[tuple[Text, ...], Meta(min_length=1)]
    rows: Annotated[tuple[tuple[float | Text, ...], ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if len(set(self.columns)) != len(self.columns):
            raise UnusableLine(english("load_columns_alike", "two columns have one name"))
        if any(len(row) != len(self.columns) for row in self.rows):
            raise UnusableLine(english("load_row_cells", "a row has not one cell for each column"))


class KeptLog(Strict, frozen=True):
    """What a library wrote to a log of its own in the process of this component."""

    name: Name = field(name="log")
    component: Component
    text: str

    def __post_init__(self) -> None:
        _require_known(self.component)


class Note(Strict, frozen=True):
    """A sentence for people."""

    text: Text = field(name="note")


class LapFormat(Strict, frozen=True):
    """One number format in a lap: its rate in TFLOP/s, and its results since the burn began."""

    format: Format
    rate: Annotated[float, Meta(ge=0.0)]
    right: Count
    wrong: Count


class Lap(Strict, frozen=True):
    """What a burn has proved until the end of a lap, `done_s` seconds of it."""

    lap: Number
    laps: Number
    done_s: Seconds = field(name="done")
    formats: Annotated[tuple[LapFormat, ...], Meta(min_length=1, max_length=16)]


class StepBegins(Strict, frozen=True):
    """A step of the power load that begins at `begins_s`, in seconds since boot."""

    step: Step
    begins_s: BootSeconds = field(name="begins")


class StepEnded(Strict, frozen=True):
    """The end of a step: the edges commanded in it, and its results, right and wrong."""

    step: Step = field(name="step_ended")
    edges: Count
    right: Count
    wrong: Count


class Waits(Strict, frozen=True):
    """The turn that a load waits for, while others have it; it carries no evidence."""

    turn: Text = field(name="waits")


class Progress(Strict, frozen=True):
    """How far the load is, in seconds; it carries no evidence."""

    done_s: float = field(name="progress")
    of_s: float = field(name="of")


class Trouble(Strict, frozen=True):
    """Why a load could not go on; nothing follows."""

    message: Message = field(name="trouble")


class End(Strict, frozen=True):
    """The last line; `readings` counts absences, tables and logs too."""

    end: bool
    readings: int


Evidence = LoadReading | Absence | LoadTable | KeptLog
Told = Note | Lap | StepBegins | StepEnded | Waits | Progress | Trouble
Line = Hello | Evidence | WrongResult | Told | End

# The key that tells a line's kind.
_KINDS: Mapping[str, type[Hello | Evidence | Told | End]] = {
    "rigproof_load": Hello,
    "reading": LoadReading,
    "absent": Absence,
    "table": LoadTable,
    "log": KeptLog,
    "note": Note,
    "lap": Lap,
    "step": StepBegins,
    "step_ended": StepEnded,
    "waits": Waits,
    "progress": Progress,
    "trouble": Trouble,
    "end": End,
}


class ProtocolError(Coded):
    """The text is not the whole output of a load; the message quotes the line."""


@dataclass(frozen=True, slots=True)
class LoadOutput:
    """The whole output of a load, from its first line to its last."""

    load: str
    parameters: dict[str, Any] = dataclasses.field(hash=False)
    readings: tuple[LoadReading, ...]
    miscompares: tuple[Miscompare, ...] = dataclasses.field(hash=False)
    notes: tuple[str, ...]
    tables: tuple[LoadTable, ...] = ()
    absences: tuple[Absence, ...] = ()
    logs: tuple[KeptLog, ...] = ()

    @property
    def injected(self) -> str | None:
        """The fault injected on purpose; a run with one can never pass."""
        return Hello(VERSION, self.load, self.parameters).injected


class _Evidence:
    """The readings, absences, tables and logs of one output, in order of arrival."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str | Component], Evidence] = {}

    def add(self, one: Evidence) -> None:
        """Add one line; raises UnusableLine for a duplicate.

        A component cannot both have a reading and lack it.
        """
        key: tuple[str, str | Component]
        match one:
            case LoadTable():
                key = "table", one.name
            case KeptLog():
                key = f"log {one.name}", one.component
            case _:
                key = one.name, one.component
        if key in self.found:
            if isinstance(one, LoadTable):
                raise UnusableLine(
                    english("load_table_twice", "the table {table} comes twice"), table=one.name
                )
            raise UnusableLine(
                english("load_reading_twice", "{name} of {component} comes twice"),
                name=one.name,
                component=str(one.component),
            )
        self.found[key] = one


class Output:
    """Writes the lines and flushes each, so that a load that dies leaves its findings behind.

    Raises ProtocolError for what no reader could use, UnusableLine for what comes twice, and
    ValueError for what is not a finite number.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._evidence = _Evidence()

    def _line(self, line: Line) -> None:
        found = msgspec.to_builtins(line, str_keys=True, enc_hook=parts.encode)
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

    def reading(self, name: str, unit: str, component: Component, value: float) -> None:
        """One measured number; a non-finite value or a unit outside the closed set is refused."""
        self._line(LoadReading(name, unit, component, value))

    def absent(self, name: str, component: Component, reason: Message) -> None:
        """A requested reading that this hardware does not have, with the reason."""
        self._line(Absence(name, component, reason))

    def table(
        self, name: str, columns: Sequence[str], rows: Sequence[Sequence[float | str]]
    ) -> None:
        """A table with at least one row, and a cell for each column."""
        self._line(LoadTable(name, tuple(columns), tuple(map(tuple, rows))))

    def log(self, name: str, component: Component, text: str) -> None:
        """What a library wrote to a log of its own."""
        self._line(KeptLog(name, component, text))

    def miscompare(self, wrong: Miscompare) -> None:
        """One wrong result, with where and when it was found."""
        self._line(wrong)

    def note(self, said: str) -> None:
        """A sentence for people."""
        self._line(Note(said))

    def lap(self, lap: Lap) -> None:
        """What a burn has proved until the end of a lap."""
        self._line(lap)

    def step_begins(self, step: Step, begins_s: float) -> None:
        """A step of the power load, so long before it begins that its record reaches the disk."""
        self._line(StepBegins(step, begins_s))

    def step_ended(self, step: Step, *, edges: int, right: int, wrong: int) -> None:
        """The end of the step that began last: edges commanded, results right and wrong."""
        self._line(StepEnded(step, edges, right, wrong))

    def waits(self, turn: str) -> None:
        """The turn that the load waits for from now on."""
        self._line(Waits(turn))

    def progress(self, done_s: float, of_s: float) -> None:
        """How far the load is, in seconds."""
        self._line(Progress(done_s, of_s))

    def trouble(self, message: Message) -> None:
        """The last line of a load that cannot go on, with the reason."""
        self._line(Trouble(message))

    def end(self) -> None:
        """The last line; output without it does not count as a whole run."""
        self._line(End(end=True, readings=len(self._evidence.found)))


@dataclass(slots=True)
class Heartbeat:
    """How far a load, or a part of one, of `whole_s` seconds is; told every few seconds."""

    output: Output
    whole_s: float
    every_s: float = HEARTBEAT_S
    told_s: float = 0.0

    def at(self, done_s: float) -> None:
        """Say how far it is, unless that was said just before."""
        if done_s - self.told_s >= self.every_s:
            self.told_s = done_s
            self.output.progress(round(min(done_s, self.whole_s), 1), self.whole_s)


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
        raise _unusable(Message(english("load_line_unknown", "it is of no known kind")), line)
    try:
        return msgspec.convert(record, kind, dec_hook=parts.decode)
    except msgspec.ValidationError as error:
        raise _unusable(why(error), line) from None


def parse(output: str) -> LoadOutput:
    """Read the whole output of a load.

    Raises ProtocolError, quoting the line, where `decode` does, and in these cases: the first line
    is not the hello, or another one is; a wrong result cannot be read; a reading or a table comes
    twice; a step does not end before the next line that begins or ends one, or before the end; the
    end is missing or miscounts; a line follows the end; the load could not go on.
    """
    if not output:
        raise ProtocolError(english("load_silent", "the load printed nothing"))
    first, *others = output.removesuffix("\n").split("\n")
    hello = decode(first)
    if not isinstance(hello, Hello):
        raise ProtocolError(
            english(
                "load_hello_missing",
                "the load's output does not begin with its hello line but with {line}",
            ),
            line=_quote(first),
        )
    evidence = _Evidence()
    miscompares: list[Miscompare] = []
    notes: list[str] = []
    step: Step | None = None  # that has begun and not ended
    for number, line in enumerate(others):
        said = decode(line)
        try:
            if isinstance(said, Evidence):
                evidence.add(said)
            elif isinstance(said, Miscompare):
                miscompares.append(said)
            elif isinstance(said, UnreadMiscompare):
                raise UnusableLine(
                    english("load_wrong_result_unread", "its wrong result cannot be read ({why})"),
                    why=said.reason,
                )
            elif isinstance(said, Note):
                notes.append(said.text)
            elif isinstance(said, Trouble):
                raise ProtocolError("load_trouble", why=said.message)
            elif isinstance(said, Hello):
                raise UnusableLine(english("load_hello_twice", "it is a second hello"))
            elif isinstance(said, StepBegins | StepEnded | End):
                if step != (said.step if isinstance(said, StepEnded) else None):
                    raise UnusableLine(
                        english(
                            "load_step_open",
                            "a step of the power load begins before the one before it has ended, "
                            "or ends without having begun",
                        )
                    )
                step = said.step if isinstance(said, StepBegins) else None
            if isinstance(said, End):
                if said != End(end=True, readings=len(evidence.found)):
                    raise UnusableLine(
                        english(
                            "load_end_miscounts", "it does not close the {count} readings before it"
                        ),
                        count=len(evidence.found),
                    )
                if number != len(others) - 1:
                    raise ProtocolError(
                        english("load_after_end", "the load printed after its end: {line}"),
                        line=_quote(others[number + 1]),
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
                    tuple(one for one in found if isinstance(one, KeptLog)),
                )
        except UnusableLine as error:
            raise _unusable(error.message, line) from None
    raise ProtocolError(english("load_end_missing", "the load's output ends without its end line"))


def readable(output: str) -> Iterator[Line]:
    """The lines that can be read of output that may be incomplete."""
    for line in output.split("\n"):
        with contextlib.suppress(ProtocolError):
            yield decode(line)


def salvage(output: str) -> tuple[WrongResult, ...]:
    """The wrong results in incomplete output, read or not.

    A wrong result counts even if the load died afterwards. This evidence can only count against the
    machine, never make a run pass, so lines of another kind are skipped.
    """
    return tuple(one for one in readable(output) if isinstance(one, WrongResult))


def trouble(output: str) -> Message | None:
    """Why a load could not go on, as its last whole line says; None where that says no reason."""
    said = _last(output)
    return said.message if isinstance(said, Trouble) else None


def waits(output: str) -> bool:
    """Whether the load waited for its turn when its output ended, as its last whole line says."""
    return isinstance(_last(output), Waits)


def _last(output: str) -> Line | None:
    try:
        return decode(output.removesuffix("\n").rpartition("\n")[2])
    except ProtocolError:
        return None


def _unusable(reason: str | Message, line: str) -> ProtocolError:
    return ProtocolError(
        english("load_line_unusable", "a line of the load's output cannot be used, {why}: {line}"),
        why=reason,
        line=_quote(line),
    )


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_unique)
        # Refuses NaN and infinity, and a lone surrogate, which could not be written to a file.
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ProtocolError(
            english(
                "load_line_torn", "a line of the load's output is not one whole JSON object: {line}"
            ),
            line=_quote(line),
        )
    return record


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key comes twice")  # never shown: the line is torn
    return record


def _quote(line: str) -> str:
    return repr(plain_text.shortened(line, 200))
