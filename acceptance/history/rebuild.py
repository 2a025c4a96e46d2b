"""Bring a history up to date from its run folders and night files, or rebuild it.

The journals are the record, and the night files what is left of those that are gone; the store is
a view of both.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import Message, Value
from acceptance.core.record import RunStarted
from acceptance.history import errors, location, night, night_file
from acceptance.history.errors import DamagedHistory, HistoryError
from acceptance.history.lock import history_lock
from acceptance.history.night import Night
from acceptance.history.night_file import UnreadableNight
from acceptance.history.store import Store, StoredNight
from acceptance.journal import clock, reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.wording.errors import each_once, said

_TOLD = 3  # names in a message; the folders have them all
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class _Found:
    """A run that the store lacks, at `path`: its folder, or if that is None its night's file.

    It began at `boot_s` seconds after the start of boot `boot_id`, and on `day` by the wall clock.
    A night's file tells no boot, but the run recorded before it, `after`; None if it was the first.
    """

    path: Path
    folder: str | None
    run_id: str
    boot_id: str
    boot_s: float
    day: float
    after: str | None = None


def open_history(
    out: Path, machine_id: str, last: Run | None = None
) -> tuple[Store, tuple[Message, ...]]:
    """The history of a machine, sound and up to date with the runs in `out`, and notices.

    A damaged history is set aside and rebuilt. `last` is a run of `out` that need not be read
    again. Raises HistoryError if it cannot be.
    """
    path = location.database(out, machine_id)
    try:
        store = Store.open(path)
        try:
            store.check()
            _write_missing(store, out, machine_id)
        except BaseException:
            store.close()
            raise
    except DamagedHistory as error:
        return rebuild(out, machine_id, error.what, last)
    try:
        return store, catch_up(store, out, machine_id, last)[1]
    except BaseException:
        store.close()
        raise


def rebuild(
    out: Path, machine_id: str, why: Message | None = None, last: Run | None = None
) -> tuple[Store, tuple[Message, ...]]:
    """Make a new history from the runs and night files in `out`; returns it with notices.

    Nights that only the old file holds are written to their files first, if it is sound. The old
    file is kept. `why` says what is wrong with it; None if nothing is. A process that dies here
    leaves the old file or the whole new one. `last` is as in `open_history`. Raises HistoryError.
    """
    path = location.database(out, machine_id)
    with history_lock(path.parent), errors.history_errors(path):
        # An older rigproof removed runs and wrote no files of their nights.
        older = not night_file.folder(out, machine_id).is_dir()
        damage = _damage(path, out, machine_id)
        notices: list[Message] = []
        if damage or not why:  # else another process has rebuilt it already
            notices = _rebuild_file(out, machine_id, path, damage, last)
        if damage and older:
            notices.append(Message("older_nights_lost"))
    store = Store.open(path)
    try:
        # runs that ended meanwhile
        notices += catch_up(store, out, machine_id, last)[1]
    except BaseException:
        store.close()
        raise
    return store, each_once(notices)


def in_one(notices: tuple[Message, ...]) -> Message:
    """The notices of one opening, of which there is at least one, as one message."""
    return notices[0] if len(notices) == 1 else Message("note", {"text": notices})


def _damage(path: Path, out: Path, machine_id: str) -> Message | None:
    """Why the old file cannot be used; None if it is whole, and every night of it is kept."""
    try:
        if path.exists():
            with Store.open(path, locked=True) as old:
                old.check()
                _write_missing(old, out, machine_id, rebuilding=True)
    except DamagedHistory as error:
        return error.what
    return None


def _write_missing(store: Store, out: Path, machine_id: str, *, rebuilding: bool = False) -> None:
    """Write the file of every night that has neither a closed run's folder nor a file.

    Such nights are those of runs that somebody removed, or an older rigproof. A file that cannot be
    read counts as missing. When `rebuilding`, the caller holds the history's lock.

    Raises DamagedHistory if the store's indexes do not agree with its tables, or if some of these
    nights cannot be read; the others are then written.
    """
    kept = {
        file.name
        for file in night_file.files(out, machine_id)
        if night_file.is_readable(file, machine_id)
    }
    missing = [
        one
        for one in store.nights()
        if night_file.name(one.run_id) not in kept and not _has_run(out, one)
    ]
    if not missing:
        night_file.make_folder(out, machine_id)
        return
    store.check(indexes=True)
    damaged = {}
    for one in missing:
        try:
            store.night(one.run_id, machine_id)
        except DamagedHistory as error:
            damaged[one.run_id] = error.what
    whole = {one.run_id for one in missing} - damaged.keys()
    with contextlib.nullcontext() if rebuilding else history_lock(store.path.parent):
        night_file.write(store, out, machine_id, whole)
    if damaged:
        (_, what), *others = damaged.items()
        more = _first([run_id for run_id, _ in others]) if others else None
        raise DamagedHistory("nights_damaged", what=what, others=more)


def _has_run(out: Path, night: StoredNight) -> bool:
    """Whether the folder of a night's run is there, with a journal that was closed."""
    return night.folder is not None and all(
        (out / night.folder / name).is_file() for name in (reader.SUPERVISOR, run_folder.VERDICT)
    )


def _first(names: Sequence[str | Message]) -> Value:
    """The first of several names, and how many more there are."""
    told, more = tuple(names[:_TOLD]), len(names) - _TOLD
    return Message("and_more", {"names": told, "more": more}) if more > 0 else told


def _rebuild_file(
    out: Path, machine_id: str, path: Path, damage: Message | None, last: Run | None
) -> list[Message]:
    """Make the new file beside the old one and put it in its place; returns notices."""
    making = path.with_name(f"{path.name}.making")
    _remove(making)
    with Store.open(making, locked=True) as store:
        count, notices = catch_up(store, out, machine_id, last)
    # The last connection to close empties the write-ahead log. If the disk was full, the log stays,
    # and the file alone is not whole.
    if making.with_name(f"{making.name}-wal").exists():
        raise HistoryError("history_unfinished", path=str(making))
    made: dict[str, Value] = {
        "what": damage or str(path),
        "nights": Message("nights", {"n": count}),
    }
    if path.exists():
        aside = path.with_name(
            f"{path.name}.{'damaged' if damage else 'replaced'}-{clock.utc().replace(':', '-')}"
        )
        _keep(path, aside)
        made["kept"] = aside.name
    making.replace(path)
    return [Message("made_anew", made), *notices]


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


def catch_up(
    store: Store, out: Path, machine_id: str, last: Run | None
) -> tuple[int, tuple[Message, ...]]:
    """Add every closed run and every night file of this machine that the store lacks, oldest first.

    Returns how many were added, and notices. `last` is as in `open_history`. Raises HistoryError;
    a run or a file that cannot be read is reported and left out.
    """
    kept = {one.run_id: one for one in store.nights()}
    folders = {one.folder for one in kept.values()}
    unread: list[Message] = []
    found: dict[str, _Found] = {}
    for run in _runs(out, machine_id, folders, unread):
        before = kept.get(run.run_id)
        if before is None:
            found.setdefault(run.run_id, run)
        elif before.folder is None or not (out / before.folder).is_dir():
            store.link(run.run_id, run.folder)
    for run in _files(out, machine_id, {*kept, *found}, unread):
        found[run.run_id] = run
    count = 0
    for run in _order(found.values()):
        try:
            if run.folder is not None:
                count += store.add(_night(out, run.folder, run.run_id, last), run.folder)
            else:
                record = night_file.read(run.path, machine_id)
                count += store.add(record.night, pruned=record.pruned)
        except (segment.JournalError, UnreadableNight) as error:
            unread.append(_unread(run.path.relative_to(out), error))
    if unread:
        return count, (Message("not_in_history", {"names": _first(unread)}),)
    return count, ()


def _unread(path: Path, error: Exception) -> Message:
    return Message("because_of", {"path": str(path), "why": said(error)})


def _night(out: Path, folder: str, run_id: str, last: Run | None) -> Night:
    if last is not None and (last.folder.name, last.start.run_id) == (folder, run_id):
        return night.night_of(last)
    return night.night_of(journal_run.read(out / folder))


def _runs(
    out: Path, machine_id: str, known: Iterable[str | None], unread: list[Message]
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
            day = night.day_of(first.utc)
            yield _Found(out / name, name, first.body.run_id, head.boot_id, first.boot_s, day)
        except segment.JournalError as error:
            unread.append(_unread(Path(name), error))


def _files(
    out: Path, machine_id: str, known: Iterable[str], unread: list[Message]
) -> Iterator[_Found]:
    """The nights of this machine in files, but those of runs that are known."""
    names = {night_file.name(run_id) for run_id in known}
    for file in night_file.files(out, machine_id):
        if file.name not in names:
            try:
                record = night_file.read(file, machine_id)
            except UnreadableNight as error:
                unread.append(_unread(file.relative_to(out), error))
            else:
                one = record.night
                yield _Found(file, None, one.run_id, one.run_id, 0.0, one.day, record.after)


def _order(runs: Collection[_Found]) -> list[_Found]:
    """The runs in their order: those with a journal by their clocks, the others after these.

    Within a boot that is the order of the boot clock, which cannot be set. When a boot began is the
    median of what its runs say, so that a wall clock that was set back does little harm. A night
    file follows the run recorded before it; if that is not there, its own day decides.
    """
    began: dict[str, list[float]] = {}
    for run in runs:
        began.setdefault(run.boot_id, []).append(run.day - run.boot_s / _DAY_S)
    days = {boot_id: statistics.median(some) for boot_id, some in began.items()}

    def place(run: _Found) -> tuple[bool, float, str]:
        later = run.folder is not None or run.after is not None
        return later, days[run.boot_id] + run.boot_s / _DAY_S, run.run_id

    by_clock = sorted(runs, key=place, reverse=True)
    followers: dict[str | None, list[_Found]] = {}
    for run in by_clock:
        followers.setdefault(run.after, []).append(run)
    known = {run.run_id for run in runs}
    found: dict[str, _Found] = {}
    # What follows itself, in a circle of damaged files, comes last.
    waiting = [*by_clock, *(run for run in by_clock if run.after not in known)]
    while waiting:
        run = waiting.pop()
        if run.run_id not in found:
            found[run.run_id] = run
            waiting += followers.get(run.run_id, [])
    return list(found.values())
