"""The data files that come with rigproof, as TOML: read strictly into their shape."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from acceptance import regular_file

Shape = TypeVar("Shape")


def read(path: Path, shape: type[Shape], error: Callable[[str], Exception]) -> Shape:
    """What a file holds. Raises `error` of one sentence that names the file, for one that cannot be read or is of another shape."""
    try:
        return msgspec.convert(tomllib.loads(regular_file.read(path, regular_file.SMALL_RECORD).decode("utf-8")), shape)
    except OSError as refusal:
        raise error(f"{path.name}: cannot be read ({refusal.strerror}): install rigproof again") from refusal
    except ValueError as refusal:  # what is no UTF-8, no TOML, or of another shape
        raise error(f"{path.name}: {refusal}") from refusal
