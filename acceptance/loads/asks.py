"""Every load's `Ask`, and how it stands in the argv of its program. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import msgspec

from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.copy import contract as copy
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm import contract as gemm
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.storage import contract as storage
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.vram import contract as vram

AnyAsk = (
    burn.Ask
    | collective.Ask
    | collective.PairAsk
    | copy.Ask
    | cpu.Gemm
    | cpu.MemoryBandwidth
    | cpu.MemoryRandom
    | digest.Ask
    | gemm.Ask
    | layers.Ask
    | parallel.Ask
    | pulse.Ask
    | step.Ask
    | storage.Checkpoint
    | storage.Feed
    | storage.Kept
    | storage.Memmap
    | vram.Ask
)
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


def typed(ask: AnyAsk) -> tuple[str, ...]:
    """An ask as people type it behind the program: words that a shell hands on as they are.

    Only what has parts is JSON, and has quotes.
    """
    given: dict[str, object] = msgspec.to_builtins(ask)
    name = str(given.pop("load"))
    return name, *(f"{field}={_text(one)}" for field, one in given.items() if one is not None)


def _text(value: object) -> str:
    if isinstance(value, list | tuple) and not any(isinstance(one, dict | list) for one in value):
        return ",".join(map(str, value))
    return msgspec.json.encode(value).decode() if isinstance(value, dict | list) else str(value)


def of_argv(words: Sequence[str]) -> AnyAsk | None:
    """What a command line asks of one of our loads; None where it starts another program.

    Raises msgspec.MsgspecError for an ask that no load knows.
    """
    return decode(words[3]) if tuple(words[1:3]) == PROGRAM and len(words) == 4 else None
