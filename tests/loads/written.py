"""What is written on a load's output."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from acceptance.loads.protocol import LoadOutput, Output, parse


def written(write: Callable[[Output], object]) -> str:
    """What is written so."""
    stream = io.StringIO()
    write(Output(stream))
    return stream.getvalue()


def ran_text(
    load: str, work: Callable[[Output], object], parameters: Mapping[str, Any] = {}
) -> str:
    """What a worker writes between the first line and the last."""

    def whole(output: Output) -> None:
        output.hello(load, {**parameters})
        work(output)
        output.end()

    return written(whole)


def ran(
    load: str, work: Callable[[Output], object], parameters: Mapping[str, Any] = {}
) -> LoadOutput:
    """What is read of a worker's output."""
    return parse(ran_text(load, work, parameters))
