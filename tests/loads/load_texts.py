"""The whole output of a load of ours, made of its contract."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from acceptance.core.component import Component
from acceptance.core.message import Message
from acceptance.loads import contract
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import ReadingKey, Unproved
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadOutput, Output, parse
from acceptance.loads.vram import contract as vram

# The rows of a sound run.
ROWS: Mapping[str, Sequence[Sequence[float | str]]] = {
    vram.PASSES: [(pattern, 2.0, 4000.0, 0.0) for pattern in vram.PATTERNS],
}

EMPTY = LoadOutput("", {}, (), (), ())


def printed(
    ask: AnyAsk,
    about: Mapping[str, Any],
    *,
    values: Mapping[str, float] = {},
    at: Mapping[ReadingKey, float] = {},
    logs: Mapping[ReadingKey, str] = {},
    absent: Collection[int] = (),
    without: Collection[str] = (),
    more: Mapping[ReadingKey, str] = {},
    wrong: Sequence[Miscompare] = (),
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[float | str]]]] = {},
) -> str:
    """What the load prints that was asked this on hardware that says this of itself.

    Rates are 1 and counts 0 where neither `values` nor `at`, by component, has another. The
    `absent` of the choices are what this hardware lacks. The readings `without` are left out, and
    `more` come besides. `tables` are columns and rows; another that is due is that of a sound run.
    A log that is due and not in `logs` says "log".
    """
    stream = io.StringIO()
    output = Output(stream)
    parameters = {**ask.parameters(), **about}
    output.hello(ask.load, parameters)
    for one in wrong:
        output.miscompare(one)
    due = ask.due(replace(EMPTY, load=ask.load, parameters=parameters))

    def measure(units: Mapping[tuple[str, Component], str]) -> None:
        for (name, component), unit in units.items():
            if name not in without:
                value = values.get(name, float(unit != "count"))
                output.reading(name, unit, component, at.get((name, component), value))

    measure(due.readings)
    for number, units in enumerate(due.choices):
        if number in absent:
            for name, component in units:
                output.absent(name, component, Message("peer_out_of_reach"))
        else:
            measure(units)
    measure(more)
    sound = {name: (columns, ROWS[name]) for name, columns in due.tables.items() if name in ROWS}
    for name, (columns, rows) in {**sound, **tables}.items():
        if rows:
            output.table(name, columns, rows)
    for name, component in sorted(due.logs):
        output.log(name, component, logs.get((name, component), "log"))
    output.end()
    return stream.getvalue()


Lines = list[dict[str, Any]]
Change = Callable[[Lines], object]


def changed(text: str, *changes: Change) -> LoadOutput:
    """What is read of a text whose lines were changed."""
    lines: Lines = [json.loads(line) for line in text.splitlines()]
    for change in changes:
        change(lines)
    return parse("".join(f"{json.dumps(line)}\n" for line in lines))


def refusal(
    ask: AnyAsk, output: LoadOutput, about: Mapping[str, Any] = {}, ran_s: float = 1e5
) -> str:
    """Why an output proves nothing, as a code; "" where it does."""
    try:
        contract.prove(ask, output, about, ran_s)
    except Unproved as error:
        return error.message.code
    return ""


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
