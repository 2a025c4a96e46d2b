"""What the power load and the watch over it print, all being well."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache

from load_texts import printed

from acceptance.core.message import Message
from acceptance.core.parts import Gpu, parse
from acceptance.loads.power_step import Step
from acceptance.loads.protocol import Output
from acceptance.loads.pulse.contract import COLUMNS, MADE, MISCOMPARES, STEPS, Ask, row_of
from acceptance.loads.pulse.edges import edges
from acceptance.watch.power_watch import Line, encode

BEGIN_S = 100.0


def after(argv: Sequence[str], option: str) -> list[str]:
    """What stands after each of these options."""
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]


@cache
def edge_count(step: Step) -> int:
    """The edges that are due in a step; the longest has tens of thousands."""
    return sum(1 for _ in edges(step))


def pulse_printed(ask: Ask, visible: Sequence[str], wrong: int = 0, made: int | None = None) -> str:
    """The power load: so many wrong results on the last GPU, and so many of its steps made.

    Where that is not all of them, it was stopped in the next one.
    """
    told = io.StringIO()
    output = Output(told)
    steps = ask.power_steps()
    whole = len(steps) if made is None else made
    rows: list[tuple[float | str, ...]] = []
    at_s = BEGIN_S
    for step in steps[: whole + 1]:
        due = edge_count(step)
        output.step_begins(step, at_s)
        output.step_ended(step, edges=due, right=1000, wrong=wrong)
        rows.append((*row_of(step), due, due, 0.5, 1000, wrong, "-"))
        at_s += step.seconds + 1.0
    text = printed(
        ask,
        {"uuids": list(visible)},
        values={(MISCOMPARES, Gpu(ask.gpus - 1)): wrong, MADE: whole / len(steps)},
        tables={STEPS: (COLUMNS, rows)},
    )
    hello, line, others = text.partition("\n")
    return hello + line + told.getvalue() + others


def watch_printed(
    argv: Sequence[str],
    watts: float = 900.0,
    stop: Message | None = None,
    reasons: Sequence[tuple[float, str]] = (),
) -> str:
    """The watch: each GPU has a limit of 700 W, and the last one these reasons."""
    names = [parse(one.partition("=")[0]) for one in after(argv, "--gpu")]
    lines = [Line(ready=True)]
    lines += [
        Line(
            name,
            (BEGIN_S - 50.0, BEGIN_S + 0.5, BEGIN_S + 0.6),
            (1100.0, watts, 90.0),
            (1980.0, 1755.0, 1980.0),
            tuple(reasons) if name == names[-1] else (),
            700.0,
        )
        for name in names
    ]
    lines += [Line(stop=stop)] if stop is not None else []
    return "".join(encode(line) + "\n" for line in lines)
