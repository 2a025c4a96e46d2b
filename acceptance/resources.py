"""The data files that come with rigproof, as TOML: read strictly into their shape."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from acceptance.core import regular_file

_PACKAGE = Path(__file__).resolve().parent


class FixtureMissing(Exception):
    """A data file of rigproof's own is not where it should be: the installation is incomplete."""


def locate(name: str) -> Path:
    """The path of `name` ("models", "machines", "profiles.toml", ...), in a wheel and in a checkout
    alike.

    Raises FixtureMissing when it is in neither.
    """
    for root in (_PACKAGE / "_fixtures", _PACKAGE.parent / "fixtures"):
        if (root / name).exists():
            return root / name
    raise FixtureMissing(f"rigproof's own data file {name!r} is missing: install rigproof again")


Shape = TypeVar("Shape")


@functools.lru_cache(128)
def _parsed(text: bytes) -> dict[str, Any]:
    """TOML by its text: one start reads the same sheets several times.

    Nobody may alter what it gives.
    """
    return tomllib.loads(text.decode("utf-8"))


def read(path: Path, shape: type[Shape], error: Callable[[str], Exception]) -> Shape:
    """What a file holds.

    Raises `error` of one sentence that names the file, for one that cannot be read or is of another
    shape.
    """
    try:
        return msgspec.convert(_parsed(regular_file.read(path, regular_file.SMALL_RECORD)), shape)
    except OSError as refusal:
        raise error(
            f"{path.name}: cannot be read ({refusal.strerror}): install rigproof again"
        ) from refusal
    except ValueError as refusal:  # what is no UTF-8, no TOML, or of another shape
        raise error(f"{path.name}: {refusal}") from refusal
