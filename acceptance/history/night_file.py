"""What stays of a night whose run is removed: a small JSON file beside the history.

With the journals of the runs that are there, these files are all that a history is made from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from acceptance.core import parts, regular_file
from acceptance.history import durable_file, errors, location
from acceptance.history.night import Night
from acceptance.history.store import Store
from acceptance.wording.errors import WordedError

FOLDER = "nights"
FORMAT = 1


class UnreadableNight(WordedError):
    """A night's file cannot be read; the message completes a sentence that begins with the file."""


class NightRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A night with its place among the others.

    `after` is the run recorded before it, None if it is the first. `pruned` says that its
    measurements were removed.
    """

    night: Night
    after: str | None
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
    content = msgspec.json.encode(record, enc_hook=parts.encode)
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
            raise UnreadableNight("night_newer", found=sealed.rigproof_night, known=FORMAT)
        record = msgspec.json.decode(sealed.record, type=NightRecord, dec_hook=parts.decode)
    except (ValueError, RecursionError) as error:  # not JSON, or of another shape
        raise UnreadableNight("no_night", why=str(error)) from error
    if encode(record) != content:
        raise UnreadableNight("night_altered")
    return record


def read(file: Path, machine_id: str) -> NightRecord:
    """The night in a file of this machine. Raises UnreadableNight."""
    try:
        record = decode(regular_file.read(file, regular_file.SMALL_RECORD))
    except OSError as error:
        raise UnreadableNight("night_unread", why=error.strerror) from error
    held = record.night
    if (held.machine_id, name(held.run_id)) != (machine_id, file.name):
        raise UnreadableNight("other_night", night=held.run_id, machine=held.machine_id)
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
        after = None
        for one in store.nights():
            if one.run_id in run_ids:
                made = store.night(one.run_id, machine_id)
                pruned = one.pruned or one.run_id in forget
                made = dataclasses.replace(made, figures=()) if pruned else made
                yield name(one.run_id), encode(NightRecord(made, after, pruned))
            after = one.run_id

    # A folder that is there shows that every night is kept: it appears with all of its files.
    making = place if place.is_dir() else place.with_name(f".{FOLDER}")
    with errors.history_errors(place):
        making.mkdir(exist_ok=True)
        durable_file.write(making, contents())
        if making != place:
            making.replace(place)
            durable_file.sync(place.parent)
