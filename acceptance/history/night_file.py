"""A night's file: one line of JSON with everything that the history holds of one run.

The names of a night's series stand apart from its values: they are the same on nearly every night,
and are read once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from acceptance.core import parts, regular_file
from acceptance.core.message import english
from acceptance.history import errors
from acceptance.history import folder as history_folder
from acceptance.history.night import Night, SeriesKey
from acceptance.wording.errors import WordedError

FOLDER = "nights"
FORMAT = 2  # `rigproof history convert` reads format 1


class UnreadableNight(WordedError):
    """A night's file cannot be read; the message completes a sentence that begins with the file."""


class DamagedNight(UnreadableNight):
    """What the file holds is not what was written."""


class _Sealed(msgspec.Struct, frozen=True):
    """`sha256` is that of `series` and `night` together; `night` itself has no series."""

    rigproof_night: int
    sha256: str = ""
    series: msgspec.Raw = msgspec.Raw()
    night: msgspec.Raw = msgspec.Raw()


_SEALED = msgspec.json.Decoder(_Sealed)
_NIGHT = msgspec.json.Decoder(Night, dec_hook=parts.decode)
_SERIES = msgspec.json.Decoder(tuple[SeriesKey, ...], dec_hook=parts.decode)


def folder(out: Path, machine_id: str) -> Path:
    """The folder of a machine's night files."""
    return history_folder.folder(out, machine_id) / FOLDER


def files(out: Path, machine_id: str) -> list[Path]:
    """The night files of a machine, by name. Raises HistoryError."""
    place = folder(out, machine_id)
    with errors.history_errors(place), contextlib.suppress(FileNotFoundError):
        return sorted(file for file in place.iterdir() if file.suffix == ".json")
    return []


def name(run_id: str) -> str:
    """The name of a night's file."""
    return f"{history_folder.file_name(run_id)}.json"


def encode(night: Night) -> bytes:
    """The file of a night."""
    series = msgspec.json.encode(night.series, enc_hook=parts.encode)
    content = msgspec.json.encode(replace(night, series=()), enc_hook=parts.encode)
    sealed = _Sealed(FORMAT, _digest(series, content), msgspec.Raw(series), msgspec.Raw(content))
    return msgspec.json.encode(sealed) + b"\n"


def _digest(series: bytes | msgspec.Raw, night: bytes | msgspec.Raw) -> str:
    digest = hashlib.sha256(series)
    digest.update(night)
    return digest.hexdigest()


@lru_cache(maxsize=64)
def _series(content: bytes) -> tuple[SeriesKey, ...]:
    return _SERIES.decode(content)


def decode(content: bytes) -> Night:
    """The night in a file. Raises UnreadableNight."""
    try:
        sealed = _SEALED.decode(content)
        if sealed.rigproof_night > FORMAT:
            raise UnreadableNight(
                english(
                    "night_newer",
                    "is written in format {found}, newer than this rigproof reads ({known}): "
                    "install a newer rigproof",
                ),
                found=sealed.rigproof_night,
                known=FORMAT,
            )
        if sealed.rigproof_night < FORMAT:
            raise UnreadableNight(
                english(
                    "night_older",
                    "is written in the format of an older rigproof: convert it with `rigproof "
                    "history convert`, or, if that names it as damaged, put a copy of it back, or "
                    "move it away",
                )
            )
        if sealed.sha256 != _digest(sealed.series, sealed.night):
            raise DamagedNight(
                english(
                    "night_altered",
                    "is not what was written: somebody or something has changed it: put a copy of "
                    "it back, or move it away",
                )
            )
        night = replace(_NIGHT.decode(sealed.night), series=_series(bytes(sealed.series)))
    except (ValueError, RecursionError) as error:  # not JSON, or of another shape
        raise DamagedNight(
            english(
                "no_night",
                "is no night that can be read ({why}): put a copy of it back, or move it away",
            ),
            why=str(error),
        ) from error
    if len(night.series) != len(night.figures):
        raise DamagedNight("night_altered")
    return night


def read(file: Path, machine_id: str) -> Night:
    """The night in a file of this machine. Raises UnreadableNight."""
    try:
        night = decode(regular_file.read(file, regular_file.SMALL_RECORD))
    except OSError as error:
        raise UnreadableNight(
            english(
                "night_unread", "cannot be read ({why}): put a copy of it back, or move it away"
            ),
            why=error.strerror,
        ) from error
    if (night.machine_id, name(night.run_id)) != (machine_id, file.name):
        raise UnreadableNight(
            english(
                "other_night",
                "holds night {night} of machine {machine}: put a copy of it back, or move it away",
            ),
            night=night.run_id,
            machine=night.machine_id,
        )
    return night


def write(out: Path, machine_id: str, nights: Collection[Night]) -> None:
    """Write the files of these nights, on the disk when it returns: all of them, or none.

    Each is whole at every moment, and takes the place of the one that is there. Raises
    HistoryError.
    """
    if not nights:
        return
    place = folder(out, machine_id)
    with errors.history_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        for above in place.parents[:3]:  # the names of new folders too
            history_folder.sync(above)
        history_folder.write(place, ((name(one.run_id), encode(one)) for one in nights))
