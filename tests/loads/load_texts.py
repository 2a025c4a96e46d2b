"""The whole output of a load of ours, made of its contract."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from acceptance.core.component import Component
from acceptance.core.message import Message
from acceptance.loads.asks import AnyAsk
from acceptance.loads.burn import contract as burn
from acceptance.loads.contract import ReadingKey
from acceptance.loads.miscompare import Miscompare
from acceptance.loads.protocol import LoadOutput, Output
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
    vram.PASSES: [(pattern, 2.0, 4000.0, 0.0) for pattern in vram.PATTERNS],
}


def printed(
    ask: AnyAsk,
    about: Mapping[str, Any],
    *,
    values: Mapping[str, float] = {},
    absent: Collection[int] = (),
    without: Collection[str] = (),
    more: Mapping[ReadingKey, str] = {},
    wrong: Sequence[Miscompare] = (),
    tables: Mapping[str, tuple[Sequence[str], Rows]] = {},
) -> str:
    """What the load prints that was asked this on hardware that says this of itself.

    Rates are 1 and counts 0 where `values` has no other. The `absent` of the choices are what this
    hardware lacks. The readings `without` are left out, and `more` come besides. `tables` are
    columns and rows; another that is due is that of a sound run.
    """
    stream = io.StringIO()
    output = Output(stream)
    parameters = {**ask.parameters(), **FACTS.get(ask.load, {}), **about}
    output.hello(ask.load, parameters)
    for one in wrong:
        output.miscompare(one)
    due = ask.due(LoadOutput(ask.load, parameters, (), (), ()))

    def measure(units: Mapping[tuple[str, Component], str]) -> None:
        for (name, component), unit in units.items():
            if name not in without:
                output.reading(name, unit, component, values.get(name, float(unit != "count")))

    measure(due.readings)
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
    output.end()
    return stream.getvalue()
