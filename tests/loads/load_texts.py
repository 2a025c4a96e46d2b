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
from acceptance.loads.burn import contract as burn
from acceptance.loads.contract import ReadingKey, Unproved
from acceptance.loads.copy import contract as copy
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadOutput, Output, parse
from acceptance.loads.storage import contract as storage
from acceptance.loads.vram import contract as vram

Rows = Sequence[Sequence[float | str]]
DIGEST = "0123456789abcdef"
SHAPE = "8192x8192x8192"
# What a load says of itself that was not asked.
FACTS: Mapping[str, Mapping[str, Any]] = {"burn": {"laps": 2, "library": "cuBLAS 12.8"}}


def burn_turns(ask: burn.Ask) -> Rows:
    """The turns of the formats, one after the other."""
    turns = [(float(lap), dtype) for lap in range(2) for dtype in ask.dtypes]
    each_s = ask.seconds / len(turns)
    return [
        (*turn, 50.0, 10.0, each_s, 100.0 + number * each_s, 100.0 + (number + 0.9) * each_s)
        for number, turn in enumerate(turns)
    ]


def burn_digests(ask: burn.Ask) -> Rows:
    """The products of the formats."""
    return [(dtype, SHAPE, DIGEST, DIGEST) for dtype in ask.dtypes]


# The rows of a sound run: of what was asked, or always the same.
ROWS_OF: Mapping[str, Callable[[Any], Rows]] = {
    burn.LAPS: burn_turns,
    burn.DIGESTS: burn_digests,
    burn.COURSES: lambda ask: [(one, "plain", 1.0, 2.0, 50.0) for one in ask.dtypes],
}
ROWS: Mapping[str, Rows] = {
    copy.PRODUCTS: [(elements, 12 * elements / 2**20, 400.0) for elements in copy.ELEMENTS],
    storage.MEMMAP: [(arm, 8.0, 1.0, 16400.0, 65536.0, 60.0, 90.0) for arm in storage.ARMS],
    vram.PASSES: [(pattern, 2.0, 4000.0, 0.0) for pattern in vram.PATTERNS],
}

EMPTY = LoadOutput("", {}, (), (), ())


def printed(
    ask: AnyAsk,
    about: Mapping[str, Any],
    *,
    values: Mapping[str | ReadingKey, float] = {},
    logs: Mapping[ReadingKey, str] = {},
    absent: Collection[int] = (),
    without: Collection[str] = (),
    more: Mapping[ReadingKey, str] = {},
    wrong: Sequence[Miscompare] = (),
    tables: Mapping[str, tuple[Sequence[str], Rows]] = {},
    notes: Sequence[str] = (),
) -> str:
    """What the load prints that was asked this on hardware that says this of itself.

    Rates are 1 and counts 0 where `values` has no other, by name or of one component. The `absent`
    of the choices are what this hardware lacks. The readings `without` are left out, and `more`
    come besides. `tables` are columns and rows; another that is due is that of a sound run. A log
    that is due and not in `logs` says "log".
    """
    stream = io.StringIO()
    output = Output(stream)
    parameters = {**ask.parameters(), **FACTS.get(ask.load, {}), **about}
    output.hello(ask.load, parameters)
    for one in wrong:
        output.miscompare(one)
    due = ask.due(replace(EMPTY, load=ask.load, parameters=parameters))

    def measure(units: Mapping[tuple[str, Component], str]) -> None:
        for (name, component), unit in units.items():
            if name not in without:
                usual = values.get(name, float(unit != "count"))
                output.reading(name, unit, component, values.get((name, component), usual))

    measure(due.readings)
    for name, component in sorted(due.absences):
        output.absent(name, component, Message("peer_out_of_reach"))
    for number, units in enumerate(due.choices):
        if number in absent:
            for name, component in units:
                output.absent(name, component, Message("peer_out_of_reach"))
        else:
            measure(units)
    measure(more)
    made = {**ROWS, **{name: rows(ask) for name, rows in ROWS_OF.items() if name in due.tables}}
    sound = {name: (columns, made[name]) for name, columns in due.tables.items() if name in made}
    for name, (columns, rows) in {**sound, **tables}.items():
        if rows:
            output.table(name, columns, rows)
    for name, component in sorted(due.logs):
        output.log(name, component, logs.get((name, component), "log"))
    for note in notes:
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


Lines = list[dict[str, Any]]
Change = Callable[[Lines], object]


def changed(text: str, *changes: Change) -> LoadOutput:
    """What is read of a text whose lines were changed."""
    lines: Lines = [json.loads(line) for line in text.splitlines()]
    for change in changes:
        change(lines)
    return parse("".join(f"{json.dumps(line)}\n" for line in lines))


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
