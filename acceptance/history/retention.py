"""Prune a machine's history by age and size: values of old nights, and folders of old runs.

The night of a removed run stays in its file, with its values unless these are too old. Never
removed are the run that accepted the machine, the newest run, a run that is being written, and a
folder that is not a run of this machine. The caller holds the machine's lock, so that no run of
this machine is under way.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from acceptance.history import errors, location, night_file, nights
from acceptance.history.night import Night
from acceptance.journal import segment

# last nights, of which two must agree on the date: one clock may have been wrong
_WITNESSES = 3
# A folder beside the nights. A run that is being removed is moved there first, so that a killed
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
    recorded: Sequence[Night],
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
        gone = location.folder(out, machine_id) / REMOVED
        _finish(gone)
        if not recorded:
            return PruneResult((), 0, 0)
        stay = {*never, recorded[-1].run_id, *_latest(out)}
        old = (set(_older(recorded, today, keep_days)) if keep_days is not None else set()) - stay
        sizes = {
            one.run_id: _size(out / str(one.folder))
            for one in recorded
            if _is_run(out, one, machine_id)
        }
        going = [run_id for run_id in sizes if run_id in old]
        left = sum(sizes.values()) - sum(sizes[run_id] for run_id in going)
        for run_id in sizes if keep_bytes is not None else ():
            if left > (keep_bytes or 0) and run_id not in stay and run_id not in going:
                going.append(run_id)
                left -= sizes[run_id]
        values = [one for one in recorded if one.run_id in old and not one.pruned]
        # first: if one cannot be written, nothing is removed
        night_file.write(
            out,
            machine_id,
            [replace(one, series=(), figures=(), pruned=True) for one in values],
        )
        folders = {one.run_id: str(one.folder) for one in recorded}
        for run_id in going:
            gone.mkdir(exist_ok=True)
            (out / folders[run_id]).rename(gone / folders[run_id])
            _finish(gone)
        return PruneResult(
            tuple((folders[run_id], sizes[run_id]) for run_id in going), len(values), left
        )


def _older(nights: Sequence[Night], today: float, days: float) -> Iterator[str]:
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


def _is_run(out: Path, night: Night, machine_id: str) -> bool:
    """Whether a night's folder exists and is that run of this machine, and closed."""
    if (
        night.folder is None
        or Path(night.folder).name != night.folder
        or (out / night.folder).is_symlink()
    ):
        return False
    try:
        found = nights.closed_run(out, night.folder, machine_id)
    except segment.JournalError:
        return False
    return found is not None and found.run_id == night.run_id


def _size(folder: Path) -> int:
    """Bytes on the disk of everything below a folder."""
    return sum(
        (Path(place) / name).lstat().st_blocks * 512
        for place, _, names in os.walk(folder)
        for name in names
    )


def _finish(gone: Path) -> None:
    """Remove the folders that are being removed, also those of an earlier prune that was killed."""
    if gone.is_dir() and not gone.is_symlink():
        shutil.rmtree(gone)
