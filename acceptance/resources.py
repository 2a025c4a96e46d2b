"""Read rigproof's own data files, TOML and JSON, into typed structs."""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from acceptance.core import regular_file
from acceptance.core.message import SetupError

_PACKAGE = Path(__file__).resolve().parent


def locate(name: str) -> Path:
    """The path of a data file or folder: "models", "machines", "profiles.toml", ...

    Works in a wheel and in a checkout. Raises SetupError where neither has it.
    """
    for root in (_PACKAGE / "_fixtures", _PACKAGE.parent / "fixtures"):
        if (root / name).exists():
            return root / name
    raise SetupError(f"rigproof's own data file {name!r} is missing: install rigproof again")


def deployment(name: str) -> Path:
    """The path of a file for another engine, such as "slurm/job".

    Works in a wheel and in a checkout. Raises SetupError where neither has it.
    """
    for root in (_PACKAGE / "_source" / "deploy", _PACKAGE.parent / "deploy"):
        if (root / name).exists():
            return root / name
    raise SetupError(f"rigproof's own file {name!r} is missing: install rigproof again")


Shape = TypeVar("Shape")


@functools.lru_cache(256)
def _parsed(text: bytes, kind: str) -> dict[str, Any]:
    """A file's tables by its text: one start reads the same sheets several times.

    Nobody may alter what it gives.
    """
    loads: Callable[[str], dict[str, Any]] = json.loads if kind == ".json" else tomllib.loads
    return loads(text.decode("utf-8"))


def read(path: Path, shape: type[Shape], error: Callable[[str], Exception] = SetupError) -> Shape:
    """The content of a TOML or JSON file, as a `shape`.

    Raises the exception made by `error`, with one sentence that names the file, where the file
    cannot be read or does not match the shape.
    """
    try:
        return msgspec.convert(read_table(path, error), shape)
    except msgspec.ValidationError as refusal:
        raise error(f"{path.name}: {refusal}") from refusal


def read_table(path: Path, error: Callable[[str], Exception] = SetupError) -> dict[str, Any]:
    """The tables of a file, which nobody may alter. Raises as `read` does."""
    try:
        return _parsed(regular_file.read(path, regular_file.SMALL_RECORD), path.suffix)
    except OSError as refusal:
        raise error(unreadable(path, refusal)) from refusal
    except ValueError as refusal:  # not UTF-8, or not TOML, or not JSON
        raise error(f"{path.name}: {refusal}") from refusal


def unreadable(path: Path, refusal: OSError) -> str:
    """What is said of a data file that cannot be read."""
    return f"{path.name}: cannot be read ({refusal.strerror}): install rigproof again"
