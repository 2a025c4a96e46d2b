"""Prune a machine's history by age and size: values of old nights, and folders of old runs.

What the history needs of such a night is first written to its file (`night_file`). Never removed
are the run that accepted the machine, the newest run, a run that is being written, and a folder
that is not a run of this machine. The caller holds the machine's lock, so that no run of this
machine is under way.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.record import RunStarted
from acceptance.history import errors, night_file
from acceptance.history.lock import history_lock
from acceptance.history.store import Store, StoredNight
from acceptance.journal import reader, run_folder, segment

# last nights, of which two must agree on the date: one clock may have been wrong
_WITNESSES = 3
# A folder beside the database. A run that is being removed is moved there first, so that a killed
# prune leaves no half run behind.
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PruneResult:
    """The result of pruning.

    `folders` are the removed folders with their bytes, `nights` is the number of nights that lost
    their values, `left` the bytes of the remaining runs.
    """

    folders: tuple[tuple[str, int], ...]
    nights: int
    left: int


def prune(
    store: Store,
    out: Path,
    machine_id: str,
    *,
    today: float,
    keep_days: float | None = None,
    keep_bytes: int | None = None,
    never: Collection[str] = (),
) -> PruneResult:
    """Remove runs and values older than `keep_days`, then the oldest runs beyond `keep_bytes`.

    `today` is in days since 1970-01-01; the date that two of the last three nights agree on
    overrides a later one. No night counts as older than those recorded before it. `never` names
    runs that stay. Raises HistoryError.
    """
    with errors.history_errors(out):
        _finish(store)
        nights = store.nights()
        if not nights:
            return PruneResult((), 0, 0)
        stay = {*never, nights[-1].run_id, *_latest(out)}
        old = (set(_older(nights, today, keep_days)) if keep_days is not None else set()) - stay
        sizes = {
            one.run_id: _size(out / str(one.folder))
            for one in nights
            if _is_run(out, one, machine_id)
        }
        going = [run_id for run_id in sizes if run_id in old]
        left = sum(sizes.values()) - sum(sizes[run_id] for run_id in going)
        for run_id in sizes if keep_bytes is not None else ():
            if left > (keep_bytes or 0) and run_id not in stay and run_id not in going:
                going.append(run_id)
                left -= sizes[run_id]
        # all of them first: if one cannot be written, nothing is removed
        due = {*going, *(one.run_id for one in nights if one.run_id in old and not one.pruned)}
        with history_lock(store.path.parent):
            night_file.write(store, out, machine_id, due, old)
        folders = {one.run_id: str(one.folder) for one in nights}
        for run_id in going:
            _remove(store, out / folders[run_id], run_id)
        return PruneResult(
            tuple((folders[run_id], sizes[run_id]) for run_id in going), _forget(store, old), left
        )


def _older(nights: Sequence[StoredNight], today: float, days: float) -> Iterator[str]:
    """The runs older than a number of days; any night's clock may have been wrong."""
    today = min(today, statistics.median_low(one.day for one in nights[-_WITNESSES:]))
    latest = -math.inf
    for one in nights:
        if one.day <= today:  # a night in the future has an unknown age
            latest = max(latest, one.day)
            if today - latest > days:
                yield one.run_id


def _latest(out: Path) -> Iterator[str]:
    """The run that `latest` points to."""
    if (out / "latest").is_symlink():
        yield (out / "latest").readlink().name


def _is_run(out: Path, night: StoredNight, machine_id: str) -> bool:
    """Whether a night's folder exists and is that run of this machine, and closed."""
    if (
        night.folder is None
        or Path(night.folder).name != night.folder
        or (out / night.folder).is_symlink()
    ):
        return False
    try:
        _, first = reader.read_first_record(out / night.folder)
    except segment.JournalError:
        return False
    if (
        first is None
        or not isinstance(first.body, RunStarted)
        or not (out / night.folder / run_folder.VERDICT).is_file()
    ):
        return False
    return (first.body.run_id, first.body.machine_id) == (night.run_id, machine_id)


def _size(folder: Path) -> int:
    """Bytes on the disk of everything below a folder."""
    return sum(
        (Path(place) / name).lstat().st_blocks * 512
        for place, _, names in os.walk(folder)
        for name in names
    )


def _remove(store: Store, folder: Path, run_id: str) -> None:
    gone = store.path.with_name(REMOVED)
    gone.mkdir(exist_ok=True)
    folder.rename(gone / folder.name)
    store.link(run_id, None)
    _finish(store)


def _finish(store: Store) -> None:
    """Remove the folders that are being removed, also those of an earlier prune that was killed."""
    gone = store.path.with_name(REMOVED)
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone)


def _forget(store: Store, old: Collection[str]) -> int:
    """Remove the values of these nights; returns how many nights had any.

    The nights themselves stay, because the order of nights depends on them.
    """
    with store.transaction() as connection:
        rows = connection.execute(
            "SELECT seq, run_id FROM night WHERE NOT pruned ORDER BY seq"
        ).fetchall()
        gone = [(seq,) for seq, run_id in rows if run_id in old]
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS gone (seq INTEGER PRIMARY KEY)")
        connection.execute("DELETE FROM gone")
        connection.executemany("INSERT INTO gone VALUES (?)", gone)
        connection.execute("DELETE FROM figure WHERE night IN (SELECT seq FROM gone)")
        connection.execute(
            "DELETE FROM line WHERE NOT EXISTS (SELECT 1 FROM figure WHERE figure.line = line.id)"
        )
        connection.execute("UPDATE night SET pruned = 1 WHERE seq IN (SELECT seq FROM gone)")
    if gone:
        # As a script: `execute` would run one step, and one step frees one page.
        store.connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
    return len(gone)
