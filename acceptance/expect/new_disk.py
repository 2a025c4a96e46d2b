"""What a disk that is declared as new may have used up."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import msgspec

from acceptance import resources
from acceptance.core.strict import Strict

FILE = "new_disk.toml"


class NewDisk(Strict, frozen=True):
    """`new_disk.toml`: the most used life, in per cent."""

    most_used_percent: Annotated[int, msgspec.Meta(ge=0, le=99)]


def read(path: Path) -> NewDisk:
    """The content of such a file. Raises DataFileError."""
    return resources.read(path, NewDisk)


@functools.cache
def shipped() -> NewDisk:
    """The shipped file. Raises DataFileError."""
    return read(resources.locate(FILE))
