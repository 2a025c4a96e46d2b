"""Every load's `Ask`, and how it stands in the argv of its program. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    | storage.Canary
    | storage.Memmap
    | vram.Ask
)
# The module of each load, whose `run(ask, output)` is the load; imported when it is asked for.
MODULES: Mapping[type[AnyAsk], str] = {
    burn.Ask: "burn.load",
    collective.Ask: "collective.load",
    collective.PairAsk: "collective.pair",
    copy.Ask: "copy.load",
    cpu.Gemm: "cpu.gemm",
    cpu.MemoryBandwidth: "cpu.memory_bandwidth",
    cpu.MemoryRandom: "cpu.memory_random",
    digest.Ask: "train.digest_load",
    gemm.Ask: "gemm.load",
    layers.Ask: "train.layer_load",
    parallel.Ask: "train.parallel_load",
    pulse.Ask: "pulse.load",
    step.Ask: "train.step_load",
    storage.Checkpoint: "storage.load",
    storage.Feed: "storage.load",
    storage.Canary: "storage.load",
    storage.Memmap: "storage.load",
    vram.Ask: "vram.load",
}
PROGRAM = ("-m", "acceptance.loads")


def name_of(ask: type[AnyAsk]) -> str:
    """The name of the load."""
    return str(ask.__struct_config__.tag)


ASKS: Mapping[str, type[AnyAsk]] = {name_of(one): one for one in MODULES}


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
