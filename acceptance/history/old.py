"""A history that was set aside, as far as it can still be read: the order of its nights, and those whose run folder is gone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from acceptance.history.era import Era
from acceptance.history.night import Figure, Line, Night
from acceptance.history.store import FAILED, OUTSIDE, UNSTEADY

_AT_ONCE = 200  # nights whose figures are held in memory: some ten megabytes


class Old:
    """Reads row by row what can be read. Of a damaged file it vouches for nothing: its nights are shown, and are no measure for others."""

    def __init__(self, connection: sqlite3.Connection | None, machine_id: str) -> None:
        self._connection = connection
        self._machine_id = machine_id
        self._lost = False
        sound = list(self._rows("PRAGMA quick_check(1)"))
        self._sound = sound == [("ok",)]
        self.ranks: dict[str, int] = dict(self._rows("SELECT run_id, seq FROM night ORDER BY seq"))
        self._lines = {
            number: Line(check, measurement, component, unit, serial or None)
            for number, check, measurement, component, unit, serial in self._rows(
                "SELECT id, check_id, measurement, component, unit, serial FROM line"
            )
        }
        self._figures: dict[int, list[Figure]] = {}
        self._read = range(0)

    @classmethod
    def open(cls, path: Path | None, machine_id: str) -> Self:
        """Open what was set aside; of None, or of what is no database at all, nothing can be read."""
        connection = None
        if path is not None:
            with contextlib.suppress(sqlite3.Error):
                connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        return cls(connection, machine_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def told(self) -> tuple[str, ...]:
        """Whether anything could not be read."""
        if not self._lost:
            return ()
        return ("not all of the old file could be read: of nights whose run folder is gone, values may be missing",)

    def night(self, run_id: str) -> Night | None:
        """A night by its run, as far as it can be read; None where nothing of it can."""
        query = (
            "SELECT seq, utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, facts, identities"
            " FROM night JOIN era ON era.id = era JOIN parts ON parts.id = parts WHERE run_id = ?"
        )
        with contextlib.suppress(ValueError, TypeError):
            for seq, utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, facts, parts in self._rows(
                query, run_id
            ):
                made = Night(
                    run_id, self._machine_id, utc, day, seconds, profile, scope, verdict, bool(virtual), bool(postponed), apart,
                    Era(tuple((name, text) for name, text in json.loads(facts))), json.loads(parts), self._of(seq),
                )  # fmt: skip
                return made if self._sound else dataclasses.replace(made, apart=apart or "salvaged")
        return None

    def _of(self, seq: int) -> tuple[Figure, ...]:
        """The figures of a night; those of its neighbours are read along, line by line, because so they lie in the file."""
        if seq not in self._read:
            self._read, self._figures = range(seq, seq + _AT_ONCE), {}
            for number, line in self._lines.items():
                query = "SELECT night, value, again, flags FROM figure WHERE line = ? AND night >= ? AND night < ?"
                for night, value, again, flags in self._rows(query, number, seq, seq + _AT_ONCE):
                    told = (bool(flags & OUTSIDE), bool(flags & UNSTEADY), bool(flags & FAILED))
                    self._figures.setdefault(night, []).append(Figure(line, value, again, *told))
        return tuple(self._figures.get(seq, ()))

    def _rows(self, query: str, *values: object) -> Iterator[Any]:
        """The rows of a query until one that cannot be read."""
        if self._connection is not None:
            try:
                yield from self._connection.execute(query, values)
            except sqlite3.Error:
                self._lost = True
