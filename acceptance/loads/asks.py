"""Every load's `Ask`, and how it stands in the argv of its program. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from acceptance.loads.gemm import contract as gemm
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.vram import contract as vram

AnyAsk = gemm.Ask | pulse.Ask | vram.Ask
PROGRAM = ("-m", "acceptance.loads")


def name_of(ask: type[AnyAsk]) -> str:
    """The name of the load."""
    return str(ask.__struct_config__.tag)


ASKS: Mapping[str, type[AnyAsk]] = {name_of(one): one for one in get_args(AnyAsk)}


def decode(given: object) -> AnyAsk:
    """An ask, from its JSON or from its fields, whose numbers may be texts.

    Raises msgspec.MsgspecError.
    """
    ask: AnyAsk = (
        msgspec.json.decode(given, type=AnyAsk)
        if isinstance(given, str)
        else msgspec.convert(given, AnyAsk, strict=False)
    )
    return ask


def argv(python: str, ask: AnyAsk) -> tuple[str, ...]:
    """The command line of a load's program."""
    fields = msgspec.to_builtins(ask)
    given = {name: value for name, value in fields.items() if value is not None}
    return (python, *PROGRAM, msgspec.json.encode(given).decode())


def of_argv(words: Sequence[str]) -> AnyAsk | None:
    """What a command line asks of one of our loads; None where it starts another program.

    Raises msgspec.MsgspecError for an ask that no load knows.
    """
    return decode(words[3]) if tuple(words[1:3]) == PROGRAM and len(words) == 4 else None
