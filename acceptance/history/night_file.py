"""What stays of a night whose run is removed: a small JSON file beside the history.

With the journals of the runs that are there, these files are all that a history is made from.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.record import RunStarted
from acceptance.core.verdict import UnreadableRun
from acceptance.history import durable_file, errors, location
from acceptance.history.night import Night
from acceptance.history.store import Store, StoredNight
from acceptance.journal import reader, segment

FOLDER = "nights"
FORMAT = 1
_COPY = "put a copy of it back, or move it away"


class UnreadableNight(Exception):
    """A night's file cannot be read; the message completes a sentence that begins with the file."""


class NightRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A night with its place among the others.

    It began `boot_s` seconds after the start of boot `boot_id`, which is the run's own id if no
    journal tells. `pruned` says that its measurements were removed.
    """

    night: Night
    boot_id: str
    boot_s: float
    pruned: bool


class _Sealed(msgspec.Struct, frozen=True):
    rigproof_night: int
    sha256: str
    record: msgspec.Raw


def folder(out: Path, machine_id: str) -> Path:
    """The folder of a machine's night files."""
    return location.folder(out, machine_id) / FOLDER


def make_folder(out: Path, machine_id: str) -> None:
    """Make the folder, which shows that every night in need of a file has one.

    Raises HistoryError.
    """
    place = folder(out, machine_id)
    with errors.history_errors(place):
        place.mkdir(exist_ok=True)


def files(out: Path, machine_id: str) -> list[Path]:
    """The night files of a machine, by name. Raises HistoryError."""
    place = folder(out, machine_id)
    with errors.history_errors(place), contextlib.suppress(FileNotFoundError):
        return sorted(file for file in place.iterdir() if file.suffix == ".json")
    return []


def name(run_id: str) -> str:
    """The name of a night's file."""
    return f"{location.file_name(run_id)}.json"


def encode(record: NightRecord) -> bytes:
    """The file of a night: one line of JSON."""
    content = msgspec.json.encode(record)
    digest = hashlib.sha256(content).hexdigest()
    return msgspec.json.encode(_Sealed(FORMAT, digest, msgspec.Raw(content))) + b"\n"


def decode(content: bytes) -> NightRecord:
    """The night in a file. Raises UnreadableNight.

    A file is read only if it would be written like this again: a missing key, an unknown one and
    another value are refused alike.
    """
    try:
        sealed = msgspec.json.decode(content, type=_Sealed)
        if sealed.rigproof_night > FORMAT:
            raise UnreadableNight(
                f"is written in format {sealed.rigproof_night}, newer than this rigproof reads "
                f"({FORMAT}): install a newer rigproof"
            )
        record = msgspec.json.decode(sealed.record, type=NightRecord)
    except (ValueError, RecursionError) as error:  # not JSON, or of another shape
        raise UnreadableNight(f"is no night that can be read ({error}): {_COPY}") from error
    if encode(record) != content:
        raise UnreadableNight(
            f"is not what was written: somebody or something has changed it: {_COPY}"
        )
    return record


def read(file: Path, machine_id: str) -> NightRecord:
    """The night in a file of this machine. Raises UnreadableNight."""
    try:
        record = decode(regular_file.read(file, regular_file.SMALL_RECORD))
    except OSError as error:
        raise UnreadableNight(f"cannot be read ({error.strerror}): {_COPY}") from error
    if (record.night.machine_id, name(record.night.run_id)) != (machine_id, file.name):
        raise UnreadableNight(
            f"holds night {record.night.run_id} of machine {record.night.machine_id}: {_COPY}"
        )
    return record


def is_readable(file: Path, machine_id: str) -> bool:
    """Whether a file holds a night of this machine."""
    try:
        read(file, machine_id)
    except UnreadableNight:
        return False
    return True


def write(
    store: Store,
    out: Path,
    machine_id: str,
    run_ids: Collection[str],
    forget: Collection[str] = (),
) -> None:
    """Write the files of these nights of a history: all of them, or none.

    Those named in `forget` are written without their measurements. The caller holds the history's
    lock. Raises HistoryError.
    """
    if not run_ids:
        return
    place = folder(out, machine_id)

    def contents() -> Iterator[tuple[str, bytes]]:
        nights = store.nights()
        starts = _starts(out, place, machine_id, nights)
        for one, start in zip(nights, starts, strict=True):
            if one.run_id in run_ids:
                made = store.night(one.run_id, machine_id)
                pruned = one.pruned or one.run_id in forget
                made = dataclasses.replace(made, figures=()) if pruned else made
                yield name(one.run_id), encode(NightRecord(made, *start, pruned))

    # A folder that is there shows that every night is kept: it appears with all of its files.
    making = place if place.is_dir() else place.with_name(f".{FOLDER}")
    with errors.history_errors(place):
        making.mkdir(exist_ok=True)
        durable_file.write(making, contents())
        if making != place:
            making.replace(place)
            durable_file.sync(place.parent)


def _starts(
    out: Path, place: Path, machine_id: str, nights: Sequence[StoredNight]
) -> list[tuple[str, float]]:
    """The boot in which each night began, and the seconds since its start.

    Where no file says so, the night lies between its neighbours if both are of one boot; otherwise
    it is a boot of its own.
    """
    starts = [_start(out, place, machine_id, one) for one in nights]
    known = [(at, *start) for at, start in enumerate(starts) if start]
    return [
        start or _between(known, at) or (one.run_id, 0.0)
        for at, (one, start) in enumerate(zip(nights, starts, strict=True))
    ]


def _between(known: Sequence[tuple[int, str, float]], at: int) -> tuple[str, float] | None:
    """The place of a night between its neighbours; None if they are not of one boot."""
    after = bisect.bisect(known, (at,))
    if not 0 < after < len(known):
        return None
    (first, boot_id, low), (last, other, high) = known[after - 1 : after + 1]
    return (
        (boot_id, low + (high - low) * (at - first) / (last - first)) if boot_id == other else None
    )


def _start(out: Path, place: Path, machine_id: str, night: StoredNight) -> tuple[str, float] | None:
    """The start of a night by its run's journal, or by its own file; None if neither is there."""
    with contextlib.suppress(segment.JournalError, UnreadableRun):
        head, first = reader.read_first_record(out / (night.folder or ""))
        if first and isinstance(first.body, RunStarted) and first.body.run_id == night.run_id:
            return head.boot_id, first.boot_s
    with contextlib.suppress(UnreadableNight):
        before = read(place / name(night.run_id), machine_id)
        return before.boot_id, before.boot_s
    return None
