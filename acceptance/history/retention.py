"""What of a machine's history may go, by age and by size: figures of old nights, and folders of old
runs with their telemetry.

Never the run that accepted the machine, never the newest, never one that is being written, and
never a folder that is no run of this machine's. The caller holds the machine's lock, so that no run
of this machine is under way.
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
from acceptance.history import errors
from acceptance.history.store import Store, StoredNight
from acceptance.journal import reader, run_folder, segment

_WITNESSES = (
    3  # the last nights, of which two must agree that it is so late: one may have had a wrong clock
)
# beside the database: what is on its way out is no run any more, whoever dies while it goes
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was removed: folders with their bytes, and how many nights lost their figures.

    `left` is the bytes of the runs that stay.
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
    """Remove what is older than `keep_days`, then the oldest run folders until the rest holds no
    more than `keep_bytes`.

    `today` is in days since 1970-01-01; it is never taken to be later than two of the last three
    nights say, nor a night to be older than those recorded before it. `never` names runs that stay.
    Raises HistoryError.
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
        folders = {one.run_id: str(one.folder) for one in nights}
        for run_id in going:
            _remove(store, out / folders[run_id], run_id)
        return PruneResult(
            tuple((folders[run_id], sizes[run_id]) for run_id in going), _forget(store, old), left
        )


def _older(nights: Sequence[StoredNight], today: float, days: float) -> Iterator[str]:
    """The runs that are older than so many days, by clocks of which any may
    have been wrong on any night.
    """
    today = min(today, statistics.median_low(one.day for one in nights[-_WITNESSES:]))
    latest = -math.inf
    for one in nights:
        if one.day <= today:  # else it is of a day to come, and nobody knows how old it is
            latest = max(latest, one.day)
            if today - latest > days:
                yield one.run_id


def _latest(out: Path) -> Iterator[str]:
    """The run that `latest` points to."""
    if (out / "latest").is_symlink():
        yield (out / "latest").readlink().name


def _is_run(out: Path, night: StoredNight, machine_id: str) -> bool:
    """Whether the folder of a night is there, and is that run of this machine, and closed."""
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
    """Remove what is on its way out, of an earlier start that was killed as well."""
    gone = store.path.with_name(REMOVED)
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone)


def _forget(store: Store, old: Collection[str]) -> int:
    """Remove the figures of these nights; the nights stay, as links of a chain.

    How many had any.
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
        # As a script: `execute` would take one step of it, and one step frees one page.
        store.connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
    return len(gone)
