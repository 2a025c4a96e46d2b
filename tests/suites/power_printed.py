"""What the watch over the power load prints, all being well."""

from __future__ import annotations

from collections.abc import Sequence

from sound_loads import BEGIN_S

from acceptance.core.message import Message
from acceptance.core.parts import parse
from acceptance.watch.power_watch import Line, encode


def after(argv: Sequence[str], option: str) -> list[str]:
    """What stands after each of these options."""
    return [argv[at + 1] for at, word in enumerate(argv) if word == option]


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
