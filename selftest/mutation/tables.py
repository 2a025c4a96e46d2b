"""Trying the mutations of tables: each is written to a folder of its own and linted there, in this
process.

`limit_lint` and `event_lint` are what the tests assert on the shipped tables; one that says
nothing of a mutated one has not noticed.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from selftest.mutation.data import DataMutation, limit_mutations, weight_mutations


class NotGreen(Exception):
    """The lint refuses the shipped tables, so no mutation of them says anything."""


def files(root: Path) -> Iterator[Path]:
    """Every table that judges."""
    for folder in ("models", "measurements", "events"):
        yield from sorted((root / "fixtures" / folder).glob("*.toml"))


def mutations(file: Path) -> list[DataMutation]:
    """Every mutation of one table."""
    text = file.read_text(encoding="utf-8")
    return list(weight_mutations(text) if file.parent.name == "events" else limit_mutations(text))


def noticing(root: Path, scratch: Path) -> Callable[[Path, str], str]:
    """A question: with this text in place of that table, what does the lint say?

    Empty: nothing.

    Raises NotGreen where it has something to say of the tables as they are.
    """
    for folder in ("tests/core", "tests/expect", "tests/observe"):
        sys.path.insert(0, str(root / folder))
    limit_lint: Any = importlib.import_module("limit_lint")
    event_lint: Any = importlib.import_module("event_lint")

    def first(file: Path, text: str) -> str:
        events = file.parent.name == "events"
        place = scratch / f"{file.parent.name}-{os.getpid()}"
        if not place.exists():
            shutil.copytree(file.parent, place)
        (place / file.name).write_text(text, encoding="utf-8")
        try:
            return str(
                next(
                    event_lint.problems(place)
                    if events
                    else limit_lint.problems(place / file.name),
                    "",
                )
            )
        except (KeyError, TypeError, ValueError) as broken:  # a table that cannot even be read
            return f"{type(broken).__name__}: {broken}"
        finally:
            shutil.copy(file, place)

    for file in files(root):
        if trouble := first(file, file.read_text(encoding="utf-8")):
            raise NotGreen(f"{file.name}: {trouble}")
    return first
