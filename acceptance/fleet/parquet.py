"""One Parquet file a night, written and asked through DuckDB, the optional extra `rigproof[fleet]`.

Rows without `measurement` are machines: verdict, run, groups. The others are values, sorted by
measurement, and name their machine. A file is written beside the old one, synced, and renamed.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from acceptance.core import parts, plain_text, regular_file
from acceptance.core.message import english
from acceptance.core.verdict import VerdictWord
from acceptance.fleet.night import Accepted, NightTable, Row, merge
from acceptance.fleet.verdicts import GROUP_KEYS, NotPassed, Series
from acceptance.history import folder
from acceptance.wording.errors import WordedError, WordedUserError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FACTS = ("verdict", "reason", "run_id", "profile", "signer", "sha256")
# As JSON.
_LISTS = ("not_passed", "parts", "caveats", "ended", "accepted")
_MACHINE = (*_FACTS, "began", "missing", "checks", *_LISTS, *GROUP_KEYS)
# The others are texts.
_TYPES = {"missing": "BOOLEAN", "began": "TIMESTAMPTZ", "checks": "INTEGER"}
_SERIES = ("measurement", "component", "check_id", "unit")
_SHAPES: Mapping[str, Any] = {
    "not_passed": tuple[tuple[str, NotPassed], ...],
    "accepted": tuple[Accepted, ...],
}
_TROUBLES = msgspec.json.Decoder(dict[str, tuple[tuple[str | None, str], ...]])
_TROUBLES_KEY = "rigproof_troubles"  # in the file's metadata: no row of a machine or value
_NIGHT = re.compile(r"night-(20\d\d-\d\d-\d\d)\.parquet", re.ASCII)
_WAIT_S = 60.0  # another collector writes a night in seconds
# Nothing is fetched from the network, and one night fits beside other work.
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "1",
}


def require() -> None:
    """Raise WordedUserError where DuckDB is not installed."""
    with _connected():
        pass


@contextlib.contextmanager
def _connected() -> Iterator[DuckDBPyConnection]:
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError as error:
        raise WordedUserError(
            english(
                "fleet_no_duckdb",
                "a night is kept through DuckDB, which is not installed: run `{command}`, or "
                "leave out --out",
            ),
            command="pip install rigproof[fleet]",
        ) from error
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    try:
        yield connection
    finally:
        connection.close()


def path_of(out: Path, night: str) -> Path:
    """The file of a night, by the date of its evening."""
    return out / f"night-{night}.parquet"


def write(out: Path, nights: Mapping[str, NightTable]) -> list[Path]:
    """Write the nights, each with what its file has already; returns the files.

    A file that cannot be read is left as it is. Raises WordedError.
    """
    made = []
    with _errors(out):
        out.mkdir(parents=True, exist_ok=True)
        with _lock(out), _connected() as connection:
            for draft in out.glob(".night-*.parquet.*"):  # of a collector that was killed
                draft.unlink()
            for night, table in nights.items():
                path = path_of(out, night)
                whole = merge(_read(connection, path), table) if path.exists() else table
                _write(connection, path, whole)
                made.append(path)
    return made


def read_last(out: Path, number: int) -> dict[str, NightTable]:
    """The last nights in a folder, by the evening's date. Raises WordedError.

    A night that is a week older than the last one is left out: too much may have changed.
    """
    dated = sorted(
        (found[1], path) for path in out.iterdir() if (found := _NIGHT.fullmatch(path.name))
    )
    if not dated:
        return {}
    with _unread(dated[-1][1]):
        last = [(date.fromisoformat(text), path) for text, path in dated[-number:]]
    return {f"{day}": read(path) for day, path in last if last[-1][0] - day < timedelta(days=7)}


def read(path: Path) -> NightTable:
    """The table in the file of a night. Raises WordedError."""
    with _errors(path), _connected() as connection:
        return _read(connection, path)


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where, why = str(error.filename or path), error.strerror or str(error)
        raise WordedError(
            english(
                "fleet_file_unwritten",
                "{path} cannot be written ({why}): correct that, then collect again",
            ),
            path=where,
            why=why,
        ) from error


@contextlib.contextmanager
def _unread(path: Path) -> Iterator[None]:
    """Turn what is wrong with the content of a file into an error that names it."""
    duckdb: Any = importlib.import_module("duckdb")
    try:
        yield
    except (duckdb.Error, ValueError, TypeError, msgspec.MsgspecError) as error:
        why = plain_text.first_line(str(error))
        raise WordedError(
            english(
                "fleet_file_unread",
                "{path} is no file of a night that can be read ({why}): move it away, then "
                "collect again",
            ),
            path=str(path),
            why=why,
        ) from error


@contextlib.contextmanager
def _lock(out: Path) -> Iterator[None]:
    """Be the only collector that writes here."""
    try:
        with folder.hold(out / ".lock", _WAIT_S):
            yield
    except folder.Locked as error:
        raise WordedError(
            english(
                "fleet_locked",
                "{path}: another collector is writing there: wait until it has ended",
            ),
            path=str(out),
        ) from error


def _texts(values: list[str | None]) -> Any:
    return np.array(values, dtype=object)


def _write(connection: DuckDBPyConnection, path: Path, table: NightTable) -> None:
    rows, series = table.rows, table.series
    groups = [dict(row.groups) for row in rows]
    machines: dict[str, Any] = {
        "m": np.arange(len(rows), dtype=np.int32),
        "machine": _texts([row.machine for row in rows]),
        "began": _texts([row.began.isoformat() if row.began else None for row in rows]),
        "missing": np.array([row.missing for row in rows], bool),
        "checks": _texts([None if row.checks is None else str(row.checks) for row in rows]),
        **{name: _texts([getattr(row, name) for row in rows]) for name in _FACTS},
        **{
            name: _texts([msgspec.json.encode(getattr(row, name)).decode() for row in rows])
            for name in _LISTS
        },
        **{key: _texts([one.get(key) for one in groups]) for key in GROUP_KEYS},
    }
    # By measurement first: what is asked of one reads a part of the file.
    order = sorted(range(len(series)), key=lambda n: (series[n].measurement, series[n]))
    columns = _columns([series[n] for n in order])
    by_series = table.values[:, order].T
    s, m = np.nonzero(~np.isnan(by_series))
    values = {"s": s.astype(np.int32), "m": m.astype(np.int32), "value": by_series[s, m]}
    for name, content in (("machines", machines), ("columns", columns), ("cells", values)):
        connection.register(name, content)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    of_machine = ", ".join(
        f'm."{name}"::{_TYPES.get(name, "VARCHAR")} AS "{name}"' for name in _MACHINE
    )
    nothing = ", ".join("NULL" for _ in _MACHINE)
    metadata = ""
    if table.troubles is not None:  # where they are known
        text = msgspec.json.encode(table.troubles).decode()
        metadata = f", KV_METADATA {{{_TROUBLES_KEY}: {_literal(text)}}}"
    # Cells come in their order and keep it in one thread. Sorting them here would take 3 GB.
    query = f"""
        COPY (
            SELECT NULL AS measurement, NULL AS component, NULL AS check_id, NULL AS unit,
                m.machine::VARCHAR AS machine, NULL::DOUBLE AS "value", {of_machine}
            FROM machines m
            UNION ALL
            SELECT c.measurement, c.component, c.check_id, c.unit, m.machine, v."value", {nothing}
            FROM cells v JOIN columns c ON c.s = v.s JOIN machines m ON m.m = v.m
        ) TO {_literal(str(draft))} (FORMAT parquet, COMPRESSION zstd{metadata})
    """
    try:
        with _unread(path):
            connection.execute(query)
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        folder.sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
        for name in ("machines", "columns", "cells"):
            connection.unregister(name)


def _literal(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _read(connection: DuckDBPyConnection, path: Path) -> NightTable:
    regular_file.require(path)
    # A view cannot take its file as a parameter.
    place = _literal(re.sub(r"([\[*?])", r"[\1]", str(path)))
    with _unread(path):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW night AS FROM read_parquet({place})")
        return _read_view(connection, place)


def _read_view(connection: DuckDBPyConnection, place: str) -> NightTable:
    facts_of = ", ".join("epoch(began)" if name == "began" else f'"{name}"' for name in _MACHINE)
    query = f"SELECT machine, {facts_of} FROM night WHERE measurement IS NULL ORDER BY machine"
    rows = []
    for machine, *facts in connection.execute(query).fetchall():
        fact = dict(zip(_MACHINE, facts, strict=True))
        moment = fact.pop("began")
        own = {key: fact.pop(key) for key in GROUP_KEYS}
        groups = tuple(sorted((key, text) for key, text in own.items() if text is not None))
        began = datetime.fromtimestamp(moment, UTC) if moment is not None else None
        msgspec.convert(fact["verdict"], VerdictWord)
        for name in _LISTS:
            fact[name] = msgspec.json.decode(fact[name], type=_SHAPES.get(name, tuple[str, ...]))
        rows.append(Row(machine, began=began, groups=groups, **fact))
    keys = ", ".join(_SERIES)
    query = f"SELECT DISTINCT {keys} FROM night WHERE measurement IS NOT NULL"
    series = sorted(
        Series(check, name, parts.parse(part), unit)
        for name, part, check, unit in connection.execute(query).fetchall()
    )
    names = {
        "m": np.arange(len(rows), dtype=np.int32),
        "machine": _texts([row.machine for row in rows]),
    }
    for name, content in (("names", names), ("columns", _columns(series))):
        connection.register(name, content)
    cells = connection.execute(
        f"""SELECT m, s, "value" FROM night JOIN names USING (machine)
        JOIN columns USING ({keys})"""
    ).fetchnumpy()
    values = np.full((len(rows), len(series)), np.nan)
    values[np.asarray(cells["m"]), np.asarray(cells["s"])] = np.asarray(cells["value"])
    # What could not be read stands in the metadata; where they say nothing of it, it is not known.
    query = f"SELECT value FROM parquet_kv_metadata({place}) WHERE key = '{_TROUBLES_KEY}'::BLOB"
    kept = connection.execute(query).fetchall()
    for name in ("names", "columns"):
        connection.unregister(name)
    troubles = _TROUBLES.decode(kept[0][0]) if kept else None
    return NightTable(tuple(rows), tuple(series), values, troubles)


def _columns(series: Sequence[Series]) -> dict[str, Any]:
    """The keys of the series as a table for DuckDB, by their number."""
    return {
        "s": np.arange(len(series), dtype=np.int32),
        "measurement": _texts([one.measurement for one in series]),
        "component": _texts([str(one.component) for one in series]),
        "check_id": _texts([one.check for one in series]),
        "unit": _texts([one.unit for one in series]),
    }
