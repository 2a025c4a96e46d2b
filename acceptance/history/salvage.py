"""Read what can be read of a damaged history.

That is the order of nights, and the nights whose run folder is gone.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from acceptance.core.plan import Scope
from acceptance.core.regular_file import NotRegular
from acceptance.core.verdict import VerdictWord
from acceptance.history import location
from acceptance.history.era import Era
from acceptance.history.errors import DamagedHistory
from acceptance.history.night import ExclusionReason, Night, NightMeasurement, SeriesKey
from acceptance.history.store import FAILED, OUTSIDE, UNSTEADY, era_of

_AT_ONCE = 200  # nights whose measurements are in memory together: some ten megabytes


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A night without its measurements, validated on reading."""

    run_id: str
    utc: str
    day: float
    seconds: float | None
    profile: str
    scope: Scope
    verdict: VerdictWord
    virtual: int
    postponed: int
    apart: ExclusionReason | None
    facts: tuple[tuple[str, str], ...]
    identities: dict[str, str]


def _has_facts(facts: Any) -> bool:
    try:
        era_of(facts, Path())
    except DamagedHistory:
        return False
    return True


class OldHistory:
    """A history read row by row as far as possible.

    Nights of a damaged file are shown, but later nights are not compared with them.
    """

    def __init__(self, connection: sqlite3.Connection | None, machine_id: str) -> None:
        self._connection = connection
        self._machine_id = machine_id
        self._lost = False
        sound = list(self._rows("PRAGMA quick_check(1)"))
        eras = all([_has_facts(facts) for (facts,) in self._rows("SELECT facts FROM era")])
        self._sound = sound == [("ok",)] and eras and not self._lost
        self.ranks: dict[str, int] = dict(self._rows("SELECT run_id, seq FROM night ORDER BY seq"))
        self._lines = {
            number: SeriesKey(check, measurement, component, unit, serial or None)
            for number, check, measurement, component, unit, serial in self._rows(
                "SELECT id, check_id, measurement, component, unit, serial FROM line"
            )
        }
        self._figures: dict[int, list[NightMeasurement]] = {}
        self._read = range(0)

    @classmethod
    def open(cls, path: Path | None, machine_id: str) -> Self:
        """Open the file that was set aside.

        If it is None, or not a database, it reads as empty.
        """
        connection = None
        if path is not None:
            with contextlib.suppress(sqlite3.Error, NotRegular):
                location.require_files(path)
                connection = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
                )
        return cls(connection, machine_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            self._connection.close()

    @property
    def has_unreadable_rows(self) -> tuple[str, ...]:
        """A message if anything could not be read."""
        if not self._lost:
            return ()
        return (
            (
                "not all of the old file could be read: of nights whose run folder is gone, "
                "values may be missing"
            ),
        )

    def night(self, run_id: str) -> Night | None:
        """A night by its run, as far as it can be read; None if it cannot."""
        query = (
            "SELECT seq, utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, "
            "facts, identities"
            " FROM night JOIN era ON era.id = era JOIN parts ON parts.id = parts WHERE run_id = ?"
        )
        for row in self._rows(query, run_id):
            with contextlib.suppress(ValueError, TypeError, msgspec.ValidationError):
                made = msgspec.convert(
                    (run_id, *row[1:-2], json.loads(row[-2]), json.loads(row[-1])), _Row
                )
                return self._night_from_row(made, self._measurements_of(row[0]))
            self._lost = True
        return None

    def _night_from_row(self, row: _Row, figures: tuple[NightMeasurement, ...]) -> Night:
        return Night(
            row.run_id,
            self._machine_id,
            row.utc,
            row.day,
            row.seconds,
            row.profile,
            row.scope,
            row.verdict,
            bool(row.virtual),
            bool(row.postponed),
            row.apart if self._sound else row.apart or "salvaged",
            Era(row.facts),
            row.identities,
            figures,
        )

    def _measurements_of(self, seq: int) -> tuple[NightMeasurement, ...]:
        """The measurements of a night.

        Those of the nights after it are read too, series by series, because that is their order in
        the file.
        """
        if seq not in self._read:
            self._read, self._figures = range(seq, seq + _AT_ONCE), {}
            for number, line in self._lines.items():
                query = (
                    "SELECT night, value, again, flags FROM figure WHERE line = ? AND night "
                    ">= ? "
                    "AND night < ?"
                )
                for night, value, again, flags in self._rows(query, number, seq, seq + _AT_ONCE):
                    if isinstance(flags, int) and all(
                        isinstance(one, float | None) for one in (value, again)
                    ):
                        bits = (bool(flags & OUTSIDE), bool(flags & UNSTEADY), bool(flags & FAILED))
                        self._figures.setdefault(night, []).append(
                            NightMeasurement(line, value, again, *bits)
                        )
                    else:
                        self._lost = True
        return tuple(self._figures.get(seq, ()))

    def _rows(self, query: str, *values: object) -> Iterator[Any]:
        """The rows of a query up to the first that cannot be read."""
        if self._connection is not None:
            try:
                yield from self._connection.execute(query, values)
            except sqlite3.Error:
                self._lost = True
