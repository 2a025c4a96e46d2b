"""The whole output of a load of ours, made of its contract."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from acceptance.core.component import Component
from acceptance.core.message import Message
from acceptance.loads.asks import AnyAsk
from acceptance.loads.contract import ReadingKey
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadOutput, Output
from acceptance.loads.vram import contract as vram

# The rows of a sound run.
ROWS: Mapping[str, Sequence[Sequence[float | str]]] = {
    vram.PASSES: [(pattern, 2.0, 4000.0, 0.0) for pattern in vram.PATTERNS],
}


def printed(
    ask: AnyAsk,
    about: Mapping[str, Any],
    *,
    values: Mapping[str | ReadingKey, float] = {},
    absent: Collection[int] = (),
    without: Collection[str] = (),
    more: Mapping[ReadingKey, str] = {},
    wrong: Sequence[Miscompare] = (),
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[float | str]]]] = {},
) -> str:
    """What the load prints that was asked this on hardware that says this of itself.

    Rates are 1 and counts 0 where `values` has no other, by name or of one component. The `absent`
    of the choices are what this hardware lacks. The readings `without` are left out, and `more`
    come besides. `tables` are columns and rows; another that is due is that of a sound run.
    """
    stream = io.StringIO()
    output = Output(stream)
    parameters = {**ask.parameters(), **about}
    output.hello(ask.load, parameters)
    for one in wrong:
        output.miscompare(one)
    due = ask.due(LoadOutput(ask.load, parameters, (), (), ()))

    def measure(units: Mapping[tuple[str, Component], str]) -> None:
        for (name, component), unit in units.items():
            if name not in without:
                usual = values.get(name, float(unit != "count"))
                output.reading(name, unit, component, values.get((name, component), usual))

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
    output.end()
    return stream.getvalue()
