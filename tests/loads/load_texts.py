"""The whole output of a load of ours, made of its contract."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sound_loads import Rows, sound

from acceptance.core.message import Message
from acceptance.loads import contract
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import ReadingKey, Unproved
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadOutput, Output, parse

EMPTY = LoadOutput("", {}, (), (), ())


def printed(
    ask: AnyAsk,
    about: Mapping[str, Any] = {},
    *,
    values: Mapping[str | ReadingKey, float] = {},
    logs: Mapping[ReadingKey, str] = {},
    absent: Collection[int] = (),
    without: Collection[str] = (),
    more: Mapping[ReadingKey, str] = {},
    wrong: Sequence[Miscompare] = (),
    tables: Mapping[str, tuple[Sequence[str], Rows]] = {},
    notes: Sequence[str] | None = None,
    **own: Any,
) -> str:
    """What the load prints that was asked this on hardware that says this of itself.

    `sound_loads` has what only this load prints, for which `own` is. Of other readings rates are 1
    and counts 0, where `values` has nothing else, by name or of one component. The `absent` of the
    choices are what this hardware lacks. The readings `without` are left out, and `more` come
    besides. `tables` are columns and rows. A log that is due and not known says "log". `notes` are
    in the place of its own.
    """
    made = sound(ask, about, wrong, **own)
    known, texts = {**made.values, **values}, {**made.logs, **logs}
    stream = io.StringIO()
    output = Output(stream)
    parameters = {**ask.parameters(), **made.facts, **about}
    output.hello(ask.load, parameters)
    for step, at_s, edges, bad in made.steps:
        output.step_begins(step, at_s)
        output.step_ended(step, edges=edges, right=1000, wrong=bad)
    for one in (*made.wrong, *wrong):
        output.miscompare(one)
    due = ask.due(replace(EMPTY, load=ask.load, parameters=parameters))
    lacked = {key for number in absent for key in due.choices[number]} | set(due.absences)
    units = {key: unit for one in (due.readings, *due.choices) for key, unit in one.items()}
    for key, unit in {**units, **more}.items():
        name, component = key
        if name not in without and key not in lacked:
            usual = known.get(name, float(unit != "count"))
            output.reading(name, unit, component, known.get(key, usual))
    for name, component in sorted(lacked):
        output.absent(name, component, Message("peer_out_of_reach"))
    columns = {**due.more_tables, **due.tables}
    own_tables = {
        name: (columns[name], rows) for name, rows in made.tables.items() if name in columns
    }
    for name, (titles, rows) in {**own_tables, **tables}.items():
        if rows:
            output.table(name, titles, rows)
    for key in sorted(due.logs):
        output.log(*key, texts.get(key, "log"))
    for note in made.notes if notes is None else notes:
        output.note(note)
    output.end()
    return stream.getvalue()


def values(output: LoadOutput) -> dict[ReadingKey, float]:
    """The readings, by name and component."""
    return {(one.name, one.component): one.value for one in output.readings}


def by_name(output: LoadOutput) -> dict[str, float]:
    """The readings of the only component."""
    (_,) = {one.component for one in output.readings}
    return {one.name: one.value for one in output.readings}


def again(output: LoadOutput) -> dict[str, Any]:
    """What `printed` is given to print the values, tables, logs and wrong results of an output."""
    return {
        "values": {(one.name, one.component): one.value for one in output.readings},
        "tables": {one.name: (one.columns, one.rows) for one in output.tables},
        "logs": {(one.name, one.component): one.text for one in output.logs},
        "wrong": output.miscompares,
    }


Lines = list[dict[str, Any]]
Change = Callable[[Lines], object]


def lines_of(text: str) -> Lines:
    """The lines of an output, to be changed."""
    return [json.loads(line) for line in text.splitlines()]


def text_of(lines: Lines) -> str:
    """The lines as text."""
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def changed(text: str, *changes: Change) -> LoadOutput:
    """What is read of a text whose lines were changed."""
    lines = lines_of(text)
    for change in changes:
        change(lines)
    return parse(text_of(lines))


def refusal(
    ask: AnyAsk, output: LoadOutput | str, about: Mapping[str, Any] = {}, ran_s: float = 1e5
) -> str:
    """Why an output proves nothing, as a code; "" where it does."""
    message = refusal_message(ask, output, about, ran_s)
    return "" if message is None else message.code


def refusal_message(
    ask: AnyAsk, output: LoadOutput | str, about: Mapping[str, Any] = {}, ran_s: float = 1e5
) -> Message | None:
    """Why an output proves nothing; None where it does."""
    try:
        contract.prove(ask, parse(output) if isinstance(output, str) else output, about, ran_s)
    except Unproved as error:
        return error.message
    return None


def line_of(lines: Lines, key: str, value: str | None = None) -> dict[str, Any]:
    """The first line with this key, such as "table"; of this value, where one is given."""
    return next(one for one in lines if key in one and value in (None, one[key]))


def hello(**parameters: object) -> Change:
    return lambda lines: lines[0]["parameters"].update(parameters)


def cell(table: str, row: int, place: int, value: object) -> Change:
    def change(lines: Lines) -> None:
        line_of(lines, "table", table)["rows"][row][place] = value

    return change


def reading(name: str, value: float) -> Change:
    return lambda lines: line_of(lines, "reading", name).update(value=value)


def drop(key: str, value: str | None = None) -> Change:
    def change(lines: Lines) -> None:
        lines.remove(line_of(lines, key, value))
        lines[-1]["readings"] -= 1

    return change


def rows(table: str, change: Callable[[list[list[Any]]], list[list[Any]]]) -> Change:
    """The table with other rows: what `change` makes of them."""

    def changes(lines: Lines) -> None:
        line = line_of(lines, "table", table)
        line["rows"] = change(line["rows"])

    return changes
