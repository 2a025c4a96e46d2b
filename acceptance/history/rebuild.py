"""Bring a history up to date from its run folders, or rebuild it.

The journals are the record, the store is a view.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.record import RunStarted
from acceptance.core.verdict import UnreadableRun
from acceptance.history import errors, location, night
from acceptance.history.errors import DamagedHistory, HistoryError
from acceptance.history.lock import history_lock
from acceptance.history.night import Night
from acceptance.history.salvage import OldHistory
from acceptance.history.store import Store
from acceptance.journal import clock, reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run

_TOLD = 3  # names in a message; the folder has them all


@dataclass(frozen=True, slots=True)
class _Found:
    """A run's folder with the start of its journal.

    It began at `boot_s` seconds after the start of boot `boot_id`, and on `day` by the wall clock.
    """

    folder: str
    run_id: str
    boot_id: str
    boot_s: float
    day: float


def open_history(
    out: Path, machine_id: str, last: Run | None = None
) -> tuple[Store, tuple[str, ...]]:
    """The history of a machine, sound and up to date with the runs in `out`, and messages.

    A damaged history is set aside and rebuilt. `last` is a run of `out` that need not be read
    again. Raises HistoryError if it cannot be.
    """
    path = location.database(out, machine_id)
    try:
        store = Store.open(path)
        try:
            store.check()
        except BaseException:
            store.close()
            raise
    except DamagedHistory as error:
        why = str(error).partition(f": {errors.REBUILD}")[0]
        return rebuild(out, machine_id, why, last)
    try:
        return store, catch_up(store, out, machine_id, last=last)[1]
    except BaseException:
        store.close()
        raise


def rebuild(
    out: Path, machine_id: str, why: str | None = None, last: Run | None = None
) -> tuple[Store, tuple[str, ...]]:
    """Make a new history from the runs in `out`; returns it with messages.

    Nights whose run is gone are taken from the old file as far as it can be read. The old file is
    kept. `why` says what is wrong with it; None if nothing is. A process that dies here leaves the
    old file or the whole new one. `last` is as in `open_history`. Raises HistoryError.
    """
    path = location.database(out, machine_id)
    with history_lock(path.parent), errors.history_errors(path):
        notices = (
            []
            if why is not None and _sound(path)
            else _rebuild_file(out, machine_id, path, why, last)
        )
    store = Store.open(path)
    try:
        # runs that ended meanwhile
        return store, (
            *notices,
            *catch_up(store, out, machine_id, last=last)[1],
        )
    except BaseException:
        store.close()
        raise


def _rebuild_file(
    out: Path, machine_id: str, path: Path, why: str | None, last: Run | None
) -> list[str]:
    """Make the new file beside the old one and put it in its place; returns messages."""
    making = path.with_name(f"{path.name}.making")
    _remove(making)
    there = path if path.exists() else None
    with OldHistory.open(there, machine_id) as old, Store.open(making, locked=True) as store:
        count, notices = catch_up(store, out, machine_id, old, last)
    # The last connection to close empties the write-ahead log. If the disk was full, the log stays,
    # and the file alone is not whole.
    if making.with_name(f"{making.name}-wal").exists():
        raise HistoryError(f"{making}: cannot be written to its end: make room, then start again")
    nights = f"{count} night{'' if count == 1 else 's'}"
    kept = ""
    if there is not None:
        aside = path.with_name(
            f"{path.name}.{'damaged' if why else 'replaced'}-{clock.utc().replace(':', '-')}"
        )
        _keep(path, aside)
        kept = f"; the old file is kept as {aside.name}"
    making.replace(path)
    return [f"{why or path}: the history was made anew, with {nights}{kept}", *notices]


def _keep(path: Path, aside: Path) -> None:
    """Keep a file under a second name, and move its log there.

    Under the old name SQLite would take the log for the new file's.
    """
    try:
        aside.hardlink_to(path)
    except OSError:  # a file system without hard links
        shutil.copy2(path, aside)
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        log.replace(aside.with_name(f"{aside.name}-wal"))
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove an unfinished file of an earlier start."""
    for ending in ("-wal", "-shm", ""):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)


def _sound(path: Path) -> bool:
    """Whether the file is whole, because another process has rebuilt it already."""
    try:
        with Store.view(path) as store:
            store.check()
    except DamagedHistory:
        return False
    return True


def catch_up(
    store: Store,
    out: Path,
    machine_id: str,
    old: OldHistory | None = None,
    last: Run | None = None,
) -> tuple[int, tuple[str, ...]]:
    """Add every closed run of this machine that the store lacks, oldest first.

    Returns how many were added, and messages. Nights that only an `old` history has are added too.
    `last` is as in `open_history`. Raises HistoryError; a run that cannot be read is reported and
    left out.
    """
    kept = {one.run_id: one for one in store.nights()}
    folders = {one.folder for one in kept.values()}
    notices: list[str] = []
    unread: list[str] = []
    found: dict[str, _Found] = {}
    for run in _runs(out, machine_id, folders, unread):
        before = kept.get(run.run_id)
        if before is None:
            found.setdefault(run.run_id, run)
        elif before.folder is None or not (out / before.folder).is_dir():
            store.link(run.run_id, run.folder)
    ranks = old.ranks if old else {}
    count = 0
    for run_id in _order(found.values(), ranks):
        try:
            made = (
                _night(out, found[run_id], last)
                if run_id in found
                else old.night(run_id)
                if old
                else None
            )
        except (segment.JournalError, UnreadableRun) as error:
            unread.append(f"{found[run_id].folder} ({error})")
            continue
        if made is not None:
            count += store.add(made, found[run_id].folder if run_id in found else None)
    if unread:
        more = f" and {len(unread) - _TOLD} more" if len(unread) > _TOLD else ""
        notices.append(
            f"not in the history, because they cannot be read: {'; '.join(unread[:_TOLD])}{more}"
        )
    return count, tuple(notices + list(old.has_unreadable_rows if old else ()))


def _night(out: Path, found: _Found, last: Run | None) -> Night:
    same = last is not None and (last.folder.name, last.start.run_id) == (
        found.folder,
        found.run_id,
    )
    return night.night_of(last if last and same else journal_run.read(out / found.folder))


def _runs(
    out: Path, machine_id: str, known: Iterable[str | None], unread: list[str]
) -> Iterator[_Found]:
    """The closed runs of this machine in new folders.

    A run without a plan is no night and is left out.
    """
    with errors.history_errors(out):
        names = sorted(
            path.parent.name
            for path in out.glob(f"*/{reader.SUPERVISOR}")
            if not path.parent.is_symlink()
        )
    for name in sorted(set(names) - set(known)):
        if not (out / name / run_folder.VERDICT).is_file():
            continue  # it is being written, or the next start will close it
        try:
            head, first = reader.read_first_record(out / name)
            if (
                first is None
                or not isinstance(first.body, RunStarted)
                or first.body.machine_id != machine_id
            ):
                continue
            yield _Found(
                name, first.body.run_id, head.boot_id, first.boot_s, night.day_of(first.utc)
            )
        except (segment.JournalError, UnreadableRun) as error:
            unread.append(f"{name} ({error})")


def _order(runs: Iterable[_Found], ranks: Mapping[str, int]) -> list[str]:
    """Run ids in the order of the runs: as in an earlier history, then by the clock.

    Within a boot, runs are ordered by the boot clock, which cannot be set; boots are ordered by
    their median day, so that a wall clock that was set back does little harm.
    """
    boots: dict[str, list[_Found]] = {}
    for run in runs:
        boots.setdefault(run.boot_id, []).append(run)
    whole = sorted(
        boots.values(),
        key=lambda found: (statistics.median(run.day for run in found), found[0].run_id),
    )
    dated = [
        run.run_id
        for found in whole
        for run in sorted(found, key=lambda run: (run.boot_s, run.run_id))
    ]
    first = sorted(ranks, key=lambda run_id: ranks[run_id])
    return [*first, *(run_id for run_id in dated if run_id not in ranks)]
