"""The reviewed list of mutations that nobody can tell from the original, each with the reason.

Pure but for reading TOML.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec


class Equivalent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry: the module, the line's text without indentation, the change, and why no test can
    tell.

    It speaks of every such line.
    """

    path: str
    line: str
    change: str
    why: str


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    equivalent: tuple[Equivalent, ...] = ()


class ListError(Exception):
    """The list cannot be used; the message names the entry."""


@dataclass(frozen=True, slots=True)
class Known:
    """The list, for asking."""

    entries: tuple[Equivalent, ...]

    def why(self, path: str, text: str, change: str) -> str | None:
        """The reason for which this mutation cannot be noticed; None where the
        list does not know it.
        """
        for entry in self.entries:
            if (entry.path, entry.line, entry.change) == (path, text, change):
                return entry.why
        return None

    def stale(
        self, found: Iterable[tuple[str, str, str]], paths: Iterable[str]
    ) -> list[Equivalent]:
        """The entries of these modules that no mutation (path, line's text,
        change) matches any more.
        """
        there = set(found)
        of = set(paths)
        return [
            one
            for one in self.entries
            if one.path in of and (one.path, one.line, one.change) not in there
        ]


def read(file: Path) -> Known:
    """The list from its file. Raises ListError for an entry that cannot be right."""
    try:
        entries = msgspec.toml.decode(file.read_bytes(), type=_File).equivalent
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ListError(f"{file.name}: {error}") from error
    seen = set()
    for one in entries:
        key = (one.path, one.line, one.change)
        if len(one.why.split()) < 4:
            raise ListError(
                f"{file.name}: {one.path}: {one.change}: say in a sentence why nobody can tell"
            )
        if key in seen:
            raise ListError(f"{file.name}: {one.path}: {one.change}: stands twice")
        seen.add(key)
    return Known(entries)
