"""Runs one load of ours, by hand or for the harness.

    python -m acceptance.loads                                  the loads
    python -m acceptance.loads gpu_gemm --help                  what one can be asked
    python -m acceptance.loads gpu_gemm dtypes=bf16 seconds=6   runs it
    python -m acceptance.loads '{"load": "gpu_gemm", "dtypes": ["bf16"], "seconds": 6}'

Exit status: 0 when it ran whole, whatever it found (the readings say what); 1 when it could not,
with one sentence on standard error and no end line; 2 for arguments that cannot be used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from acceptance.loads import asks
from acceptance.loads.asks import ASKS, AnyAsk
from acceptance.loads.burn import contract as burn
from acceptance.loads.collective import contract as collective
from acceptance.loads.copy import contract as copy
from acceptance.loads.cpu import contract as cpu
from acceptance.loads.gemm import contract as gemm
from acceptance.loads.program import exit_load, run_guarded
from acceptance.loads.protocol import Output
from acceptance.loads.pulse import contract as pulse
from acceptance.loads.storage import contract as storage
from acceptance.loads.train import digest_contract as digest
from acceptance.loads.train import layer_contract as layers
from acceptance.loads.train import parallel_contract as parallel
from acceptance.loads.train import step_contract as step
from acceptance.loads.vram import contract as vram

HELP = ("-h", "--help")
COMMAND = " ".join(("python", *asks.PROGRAM))


class UsageError(Exception):
    """The arguments ask for no load; the message is one sentence."""


def parsed(words: Sequence[str]) -> AnyAsk:
    """The ask of a command line. Raises UsageError."""
    name, *fields = words
    if name.startswith("{"):
        if fields:
            raise UsageError(f"{fields[0]!r} follows the JSON, which says everything")
        given: object = name
    else:
        given = {"load": name, **dict(map(partial(_field, _named(name)), fields))}
        if len(given) != len(fields) + 1:
            raise UsageError("an argument is given twice")
    try:
        return asks.decode(given)
    except msgspec.MsgspecError as error:
        load = "" if given is name else f" {name}"
        raise UsageError(f"{error}: see `{COMMAND}{load} --help`") from None


def _named(name: str) -> type[AnyAsk]:
    if (found := ASKS.get(name)) is None:
        raise UsageError(f"there is no load {name!r}: the loads are {', '.join(ASKS)}")
    return found


def _field(ask: type[AnyAsk], word: str) -> tuple[str, object]:
    """One NAME=VALUE; JSON, or a list's values between commas.

    Of values that have parts, these stand between commas, and the values between slashes.
    """
    name, equals, text = word.partition("=")
    shapes = _shapes(ask)
    if not equals or name not in shapes:
        raise UsageError(f"{word!r} is no NAME=VALUE with one of {', '.join(shapes)}")
    kind = shapes[name].get("type")
    if text.startswith(("{", "[")) and kind != "string":
        try:
            return name, json.loads(text)
        except ValueError as error:
            raise UsageError(f"{name} is no JSON: {error}") from None
    if kind != "array":
        return name, text
    if "$ref" not in shapes[name]["items"]:
        return name, text.split(",")
    return name, [[part or None for part in one.split(",")] for one in text.split("/")]


def _shapes(ask: type[AnyAsk]) -> dict[str, dict[str, Any]]:
    """The JSON schema of each field of an ask, the required ones first."""
    about = msgspec.json.schema(ask)["$defs"][ask.__name__]
    names = sorted(about["properties"].keys() - {"load"}, key=list(about["properties"]).index)
    names.sort(key=lambda name: name not in about["required"])
    return {name: about["properties"][name] for name in names}


def usage(ask: type[AnyAsk]) -> Iterator[str]:
    """What a load can be asked, line by line."""
    yield f"{COMMAND} {asks.name_of(ask)} NAME=VALUE ..."
    yield f"    {(ask.__doc__ or '').strip()}"
    for name, shape in _shapes(ask).items():
        yield f"{name}: {_allowed(shape)}"


_BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
    "multipleOf": "a multiple of",
}


def _allowed(shape: dict[str, Any]) -> str:
    """A field's description, values, bounds and default."""
    one = shape.get("items", shape)
    one = next((part for part in one.get("anyOf", ()) if part != {"type": "null"}), one)
    about = shape.get("description") or one.get("description")
    parts = [about] if about is not None else []
    if values := [value for value in one.get("enum", ()) if value is not None]:
        parts.append(f"of {', '.join(map(str, values))}")
    parts += [f"{text} {one[key]}" for key, text in _BOUNDS.items() if key in one]
    default = shape.get("default")
    if isinstance(default, int | float | str):
        parts.append(f"default {default}")
    elif "default" in shape:
        parts.append("optional")
    return "; ".join(parts)


def run(ask: AnyAsk) -> int:
    """Run the load; the exit status."""
    name, output = ask.load, Output(sys.stdout)
    match ask:
        case collective.Ask():
            from acceptance.loads.collective import load as group

            return run_guarded(name, partial(group.run, ask, output), errors=group.ERRORS)
        case collective.PairAsk():
            from acceptance.loads.collective import pair

            return run_guarded(name, partial(pair.run, ask, output), errors=pair.ERRORS)
        case burn.Ask():
            from acceptance.loads.burn import load as burn_load
            from acceptance.loads.gemm.load import STRAYS

            return run_guarded(name, partial(burn_load.run, ask, output), strays=STRAYS)
        case copy.Ask():
            from acceptance.loads.copy import load as copy_load

            return run_guarded(name, partial(copy_load.run, ask, output), errors=copy_load.ERRORS)
        case gemm.Ask():
            from acceptance.loads.gemm import load as gemm_load

            return run_guarded(name, partial(gemm_load.run, ask, output), strays=gemm_load.STRAYS)
        case pulse.Ask():
            from acceptance.loads.pulse import load as pulse_load

            return run_guarded(name, partial(pulse_load.run, ask, output), errors=pulse_load.ERRORS)
        case vram.Ask():
            from acceptance.loads.vram import load as vram_load

            return run_guarded(name, partial(vram_load.run, ask, output), strays=vram_load.STRAYS)
        case digest.Ask():
            from acceptance.loads.train import digest_load

            work = partial(digest_load.run, ask, output)
            return run_guarded(name, work, strays=digest_load.STRAYS)
        case parallel.Ask():
            from acceptance.loads.train import parallel_load

            work = partial(parallel_load.run, ask, output)
            return run_guarded(name, work, errors=parallel_load.ERRORS)
        case cpu.Gemm():
            from acceptance.loads.cpu import gemm as cpu_gemm

            return run_guarded(name, partial(cpu_gemm.run, ask, output), errors=cpu_gemm.ERRORS)
        case cpu.MemoryBandwidth():
            from acceptance.loads.cpu import memory_bandwidth

            work = partial(memory_bandwidth.run, ask, output)
            return run_guarded(name, work, errors=memory_bandwidth.ERRORS)
        case cpu.MemoryRandom():
            from acceptance.loads.cpu import memory_random

            work = partial(memory_random.run, ask, output)
            return run_guarded(name, work, errors=memory_random.ERRORS)
        case storage.Memmap() | storage.Feed() | storage.Checkpoint() | storage.Kept():
            from acceptance.loads.storage import load as storage_load

            return run_guarded(
                name, partial(storage_load.run, ask, output), errors=storage_load.ERRORS
            )
        case layers.Ask():
            from acceptance.loads.train import layer_load

            return run_guarded(name, partial(layer_load.run, ask, output), strays=layer_load.STRAYS)
        case step.Ask():
            from acceptance.loads.train import step_load

            return run_guarded(name, partial(step_load.run, ask, output), strays=step_load.STRAYS)


def main(words: Sequence[str]) -> int:
    """The program; the module's docstring lists its exit statuses."""
    if not words or words[0] in HELP:
        print(f"{COMMAND} LOAD NAME=VALUE ...\n")
        for name, kind in ASKS.items():
            print(f"{name}: {(kind.__doc__ or '').strip()}")
        return 0
    try:
        if len(words) > 1 and words[1] in HELP:
            print("\n".join(usage(_named(words[0]))))
            return 0
        ask = parsed(words)
    except UsageError as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        return 2
    return run(ask)


if __name__ == "__main__":
    exit_load(main(sys.argv[1:]))
