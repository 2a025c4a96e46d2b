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
from importlib import import_module
from typing import Any

import msgspec

from acceptance.loads import asks
from acceptance.loads.asks import ASKS, AnyAsk
from acceptance.loads.program import LoadError, exit_load, run_guarded
from acceptance.loads.protocol import Output

HELP = ("-h", "--help")
COMMAND = " ".join(("python", *asks.PROGRAM))


def parsed(words: Sequence[str]) -> AnyAsk:
    """The ask of a command line. Raises LoadError."""
    name, *fields = words
    if name.startswith("{"):
        if fields:
            raise LoadError(f"{fields[0]!r} follows the JSON, which says everything")
        given: object = name
    else:
        given = {"load": name, **dict(map(partial(_field, _named(name)), fields))}
        if len(given) != len(fields) + 1:
            raise LoadError("an argument is given twice")
    try:
        return asks.decode(given)
    except msgspec.MsgspecError as error:
        load = "" if given is name else f" {name}"
        raise LoadError(f"{error}: see `{COMMAND}{load} --help`") from None


def _named(name: str) -> type[AnyAsk]:
    if (found := ASKS.get(name)) is None:
        raise LoadError(f"there is no load {name!r}: the loads are {', '.join(ASKS)}")
    return found


def _field(ask: type[AnyAsk], word: str) -> tuple[str, object]:
    """One NAME=VALUE; JSON, or a list's values between commas.

    Of values that have parts, these stand between commas, and the values between slashes.
    """
    name, equals, text = word.partition("=")
    shapes = _shapes(ask)
    if not equals or name not in shapes:
        raise LoadError(f"{word!r} is no NAME=VALUE with one of {', '.join(shapes)}")
    kind = shapes[name].get("type")
    if text.startswith(("{", "[")) and kind != "string":
        try:
            return name, json.loads(text)
        except ValueError as error:
            raise LoadError(f"{name} is no JSON: {error}") from None
    if kind != "array":
        return name, text
    return (
        (name, text.split(","))
        if "$ref" not in shapes[name]["items"]
        else (name, [[part or None for part in one.split(",")] for one in text.split("/")])
    )


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
    yield from (f"{name}: {_allowed(shape)}" for name, shape in _shapes(ask).items())


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
    load = import_module(f"acceptance.loads.{asks.MODULES[type(ask)]}")
    return run_guarded(ask.load, partial(load.run, ask, Output(sys.stdout)), ask.CLEARED)


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
    except LoadError as error:
        print(f"{COMMAND}: {error}", file=sys.stderr)
        return 2
    return run(ask)


if __name__ == "__main__":
    exit_load(main(sys.argv[1:]))
