"""`rigproof history convert`: the history of an older rigproof, written as night files.

Only that command imports it; the next release drops both. An older rigproof kept nights in a SQLite
file of version 2, and in night files of format 1 those whose runs were removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from acceptance.core import parts, regular_file
from acceptance.core.grouping import grouped
from acceptance.core.message import Message, english
from acceptance.history import errors, night_file, nights
from acceptance.history import folder as history_folder
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night, NightMeasurement, ReportedChanges, SeriesKey
from acceptance.history.night_file import UnreadableNight
from acceptance.wording.errors import said

VERSION = 2
CONVERTED = ".converted"
_NIGHTS = (
    "SELECT run_id, utc, day, seconds, profile, scope, verdict, virtual, postponed, apart, "
    "facts, told, folder, pruned, seq FROM night JOIN era ON era.id = era ORDER BY seq"
)
_FIGURES = (
    "SELECT night, check_id, measurement, component, unit, serial, value, again, flags "
    "FROM figure JOIN line ON line = line.id ORDER BY line.id"
)


class _Figure(msgspec.Struct, frozen=True):
    line: SeriesKey
    value: float | None
    again: float | None
    outside: bool
    unsteady: bool
    failed: bool


class _Night(msgspec.Struct, frozen=True):
    """A night as format 1 has it."""

    figures: tuple[_Figure, ...]
    told: ReportedChanges | None


class _Record(msgspec.Struct, frozen=True):
    night: msgspec.Raw
    pruned: bool


class _File(msgspec.Struct, frozen=True):
    sha256: str
    record: msgspec.Raw


def convert(out: Path, machine_id: str) -> tuple[int, tuple[Message, ...]]:
    """Write every night of an older history as a file of this format.

    Returns how many, and the notice of night files that cannot be read, which stay as they are.

    The SQLite file keeps its content under another name. Who dies on the way leaves it where it
    is, and may start again. Raises HistoryError, with nothing changed, where the SQLite file is
    damaged.
    """
    path = history_folder.database(out, machine_id)
    with errors.history_errors(path):
        found = _of_database(path, machine_id) if path.exists() else []
        known = {night_file.name(one.run_id) for one in found}
        older: list[Night] = []
        present: list[Night] = []
        unread: dict[Path, UnreadableNight] = {}
        for file in night_file.files(out, machine_id):
            if file.name not in known:
                try:
                    present.append(night_file.read(file, machine_id))
                except UnreadableNight as error:
                    if (one := _of_file(file, machine_id)) is not None:
                        older.append(one)
                    else:
                        unread[file] = error
        found += sorted(older, key=lambda one: one.day)
        if found:  # before the nights that this version has recorded since
            ordered = (*found, *nights.in_order(present))
            made = [replace(one, number=number) for number, one in enumerate(ordered, start=1)]
            night_file.write(out, machine_id, made)
        if path.exists():
            path.replace(path.with_name(f"{path.name}{CONVERTED}"))
            history_folder.sync(path.parent)
    return len(found), nights.unread_notices(unread)


def _of_database(path: Path, machine_id: str) -> list[Night]:
    """The nights of a SQLite file, in order. Raises HistoryError."""
    regular_file.require(path)
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            sound = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if (version, sound) != (VERSION, "ok"):
                raise HistoryError(
                    english(
                        "history_unconverted",
                        "{path}: cannot be converted ({why}): rebuild it with the rigproof that "
                        "wrote it (`rigproof history --rebuild`), or move it away; then convert "
                        "again",
                    ),
                    path=str(path),
                    why=f"version {version}, {sound}",
                )
            figures = grouped((number, row) for number, *row in connection.execute(_FIGURES))
            return [
                _of_rows(row, figures.get(row[-1], ()), machine_id)
                for row in connection.execute(_NIGHTS)
            ]
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise HistoryError("history_unconverted", path=str(path), why=said(error)) from error


def _of_rows(row: Any, figures: tuple[Any, ...], machine_id: str) -> Night:
    *facts, virtual, postponed, apart, era, told, folder, pruned, _ = row
    names = ("run_id", "utc", "day", "seconds", "profile", "scope", "verdict")
    made = {
        **dict(zip(names, facts, strict=True)),
        "machine_id": machine_id,
        "virtual": bool(virtual),
        "postponed": bool(postponed),
        "apart": apart,
        "era": {"facts": msgspec.json.decode(era)},
        "series": [(*names, serial or None) for *names, serial, _, _, _ in figures],
        "figures": [
            (value, again, *(bool(flags & bit) for bit in (1, 2, 4)))
            for *_, value, again, flags in figures
        ],
        "reported": None if told is None else msgspec.json.decode(told),
        "folder": folder,
        "pruned": bool(pruned),
    }
    return msgspec.convert(made, Night, dec_hook=parts.decode)


def _of_file(path: Path, machine_id: str) -> Night | None:
    """The night in a file of format 1 of this machine; None if it holds none, or is damaged."""
    try:
        content = regular_file.read(path, regular_file.SMALL_RECORD)
        sealed = msgspec.json.decode(content, type=_File)
        if sealed.sha256 != hashlib.sha256(sealed.record).hexdigest():
            return None
        record = msgspec.json.decode(sealed.record, type=_Record)
        measured = msgspec.json.decode(record.night, type=_Night, dec_hook=parts.decode)
        plain = msgspec.json.decode(record.night, type=dict[str, Any])
        names = ("identities", "figures", "told")
        made = {name: value for name, value in plain.items() if name not in names}
        night = msgspec.convert({**made, "series": (), "figures": ()}, Night)
    except (OSError, ValueError, RecursionError):
        return None
    if (night.machine_id, night_file.name(night.run_id)) != (machine_id, path.name):
        return None
    return replace(
        night,
        series=tuple(one.line for one in measured.figures),
        figures=tuple(
            NightMeasurement(one.value, one.again, one.outside, one.unsteady, one.failed)
            for one in measured.figures
        ),
        reported=measured.told,
        pruned=record.pruned,
    )
