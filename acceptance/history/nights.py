"""The nights of a machine: its night files, up to date with the folders of its runs.

Prune a machine's history by age and size: values of old nights, and folders of old runs.

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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from acceptance.core.grouping import grouped
from acceptance.core.message import Message, Value, english
from acceptance.core.record import RunStarted
from acceptance.history import errors, night, night_file, queries
from acceptance.history import folder as history_folder
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night
from acceptance.history.night_file import DamagedNight, UnreadableNight
from acceptance.journal import reader, run_folder, segment
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.wording.errors import said

_NAMED = 3  # names in a message; the folders have them all
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class ClosedRun:
    """A closed run in the folder of this name.

    It began at `boot_s` seconds after the start of boot `boot_id`, and on `day` by the wall clock.
    """

    folder: str
    run_id: str
    boot_id: str
    boot_s: float
    day: float


def read(out: Path, machine_id: str) -> tuple[tuple[Night, ...], dict[Path, UnreadableNight]]:
    """The nights of a machine in the order of recording, and the files that cannot be read.

    Raises HistoryError, also where the history is still that of an older rigproof.
    """
    older = history_folder.database(out, machine_id)
    with errors.history_errors(older):
        if older.exists():
            raise HistoryError(
                english(
                    "history_to_convert",
                    "{path}: is the history of an older rigproof: convert it once with `rigproof "
                    "history convert`",
                ),
                path=str(older),
            )
    found: list[Night] = []
    unread: dict[Path, UnreadableNight] = {}
    for file in night_file.files(out, machine_id):
        try:
            found.append(night_file.read(file, machine_id))
        except UnreadableNight as error:
            unread[file] = error
    return in_order(found), unread


def in_order(nights: Iterable[Night]) -> tuple[Night, ...]:
    """The nights by number; two processes may have given the same one."""
    return tuple(sorted(nights, key=lambda one: (one.number, one.day, one.run_id)))


def unread_notices(unread: dict[Path, UnreadableNight]) -> tuple[Message, ...]:
    """The notice of files that cannot be read, if there are any."""
    return _not_in_history([_because(str(file), error) for file, error in unread.items()])


class OpenHistory(NamedTuple):
    """The nights of a machine in order, notices, and whether all of its night files were read."""

    nights: tuple[Night, ...]
    notices: tuple[Message, ...]
    complete: bool


def open_history(out: Path, machine_id: str, last: Run | None = None) -> OpenHistory:
    """The nights of a machine, after every closed run in `out` was recorded.

    A damaged night whose run is still there is written again, in its place among the other runs. A
    run that cannot be read, or a damaged night without its run, is reported and left out. `last` is
    a run of `out` that need not be read again. Raises HistoryError, also for a night file that is
    not damaged and cannot be read: what it holds is not known, nor which number is the next.
    """
    nights, unread = read(out, machine_id)
    if sealed := [file for file, one in unread.items() if not isinstance(one, DamagedNight)]:
        names = _names([_because(str(file), unread[file]) for file in sealed])
        raise HistoryError("not_in_history", names=names)
    troubles: list[Message] = []
    notices: list[Message] = []
    known = {one.run_id: one for one in nights}
    number = max((one.number for one in nights), default=0)
    changed: list[Night] = []
    for run in _order(list(_runs(out, machine_id, {one.folder for one in nights}, troubles))):
        before = known.get(run.run_id)
        if before is not None:
            if before.folder is None or not (out / before.folder).is_dir():  # it was renamed
                changed.append(replace(before, folder=run.folder))
                known[run.run_id] = changed[-1]
            continue
        try:
            made = _night(out, run, last)
        except segment.JournalError as error:
            troubles.append(_because(run.folder, error))
            continue
        file = night_file.folder(out, machine_id) / night_file.name(run.run_id)
        if isinstance(unread.get(file), DamagedNight):
            del unread[file]
            notices.append(
                Message(
                    english(
                        "night_restored", "{path}: was damaged, and was written again from its run"
                    ),
                    {"path": str(file)},
                )
            )
            place = _place(made, run, _order(list(_runs(out, machine_id, (), []))), known)
        else:
            place = number = number + 1
        changed.append(replace(made, number=place))
        known[run.run_id] = changed[-1]
    night_file.write(out, machine_id, changed)
    troubles += [_because(str(file), error) for file, error in unread.items()]
    return OpenHistory(in_order(known.values()), (*notices, *_not_in_history(troubles)), not unread)


def _place(
    made: Night, run: ClosedRun, runs: Sequence[ClosedRun], known: Mapping[str, Night]
) -> int:
    """The number of a night that is written again: that of the run before it, of those still here;
    of the last night until its day by the clock, where there is none.
    """
    before = [one.run_id for one in runs[: runs.index(run)] if one.run_id in known]
    if before:
        return known[before[-1]].number
    nights = in_order(known.values())
    earlier = nights[: queries.last_until(nights, made.day)]
    return earlier[-1].number if earlier else 0


def in_one(notices: tuple[Message, ...]) -> Message:
    """The notices of one opening, of which there is at least one, as one message."""
    return notices[0] if len(notices) == 1 else Message("note", {"text": notices})


def _not_in_history(troubles: Sequence[Message]) -> tuple[Message, ...]:
    return (
        (
            Message(
                english(
                    "not_in_history", "not in the history, because they cannot be read: {names}"
                ),
                {"names": _names(troubles)},
            ),
        )
        if troubles
        else ()
    )


def _names(troubles: Sequence[Message]) -> Value:
    names: Value = tuple(troubles[:_NAMED])
    if (more := len(troubles) - _NAMED) > 0:
        names = Message(
            english("and_more", "{names} and {more} more"), {"names": names, "more": more}
        )
    return names


def _because(path: str, error: Exception) -> Message:
    return Message(english("because_of", "{path} ({why})"), {"path": path, "why": said(error)})


def _night(out: Path, run: ClosedRun, last: Run | None) -> Night:
    whole = (
        last
        if last is not None and (last.folder.name, last.start.run_id) == (run.folder, run.run_id)
        else journal_run.read(out / run.folder)
    )
    return replace(night.night_of(whole), folder=run.folder)


def _runs(
    out: Path, machine_id: str, known: Collection[str | None], troubles: list[Message]
) -> Iterator[ClosedRun]:
    """The closed runs of this machine in folders that no night names."""
    with errors.history_errors(out):
        names = sorted(
            path.parent.name
            for path in out.glob(f"*/{reader.SUPERVISOR}")
            if not path.parent.is_symlink()
        )
    for name in names:
        if name not in known:
            try:
                if (found := closed_run(out, name, machine_id)) is not None:
                    yield found
            except segment.JournalError as error:
                troubles.append(_because(name, error))


def closed_run(out: Path, name: str, machine_id: str) -> ClosedRun | None:
    """The run of this machine in a folder of `out`; None if it is being written, or another's.

    The next start closes a run that was cut off. One without a plan is no night. Raises
    JournalError or UnreadableRun.
    """
    if not (out / name / run_folder.VERDICT).is_file():
        return None
    head, first = reader.read_first_record(out / name)
    if (
        first is None
        or not isinstance(first.body, RunStarted)
        or first.body.machine_id != machine_id
    ):
        return None
    day = night.day_of(first.utc)
    return ClosedRun(name, first.body.run_id, head.boot_id, first.boot_s, day)


def _order(runs: Collection[ClosedRun]) -> list[ClosedRun]:
    """The runs in their order, by their clocks.

    Within a boot that is the order of the boot clock, which cannot be set. When a boot began is the
    median of what its runs say, so that a wall clock that was set back does little harm.
    """
    began = grouped((run.boot_id, run.day - run.boot_s / _DAY_S) for run in runs)
    days = {boot_id: statistics.median(some) for boot_id, some in began.items()}
    return sorted(runs, key=lambda run: (days[run.boot_id] + run.boot_s / _DAY_S, run.run_id))


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
        gone = history_folder.folder(out, machine_id) / REMOVED
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
        found = closed_run(out, night.folder, machine_id)
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
