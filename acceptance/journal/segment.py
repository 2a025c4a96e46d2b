"""Writes and reads one segment of a journal: append-only JSON lines, one writer, crash-safe.

A line is one complete record. It is flushed to disk (fsync) at check boundaries and events. A
writer that dies may leave half a line at the end of its own segment, never in the middle. The
reader drops that line and reports it.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from acceptance.core import parts, regular_file
from acceptance.core.evidence import AnyBody, Observed, Sample, Table, ToolRan
from acceptance.core.message import english
from acceptance.core.record import Entry, Measured, Skipped
from acceptance.journal import clock
from acceptance.wording.errors import WordedError

VERSION = 3
OLDEST, SEALED_SINCE = 2, 3
# msgspec raises ValueError for malformed JSON, a wrong type or invalid UTF-8, and RecursionError
# for nesting without end.
UNDECODABLE = (
    ValueError,
    RecursionError,
)
# A power cut may lose these without changing what the run proves. They reach the disk with the next
# record of another kind.
_LAZY = (Measured, Table, Skipped, ToolRan, Sample, Observed)


class JournalError(WordedError):
    """A journal cannot be read or written."""


class SegmentHead(msgspec.Struct, frozen=True):
    """The first line of a segment: version of the format, writer, boot, machine, and run."""

    rigproof_journal: int
    segment: str
    boot_id: str
    pid: int
    machine_id: str | None = None
    run_id: str | None = None


class _Version(msgspec.Struct, frozen=True):
    rigproof_journal: int


class SegmentLine(msgspec.Struct, frozen=True):
    """Every other line: a record with its sequence number, seconds since boot and wall time."""

    seq: int
    boot_s: float
    utc: str
    body: AnyBody

    def __hash__(self) -> int:
        return hash((self.seq, self.boot_s))


_DECODER = msgspec.json.Decoder(SegmentLine, dec_hook=parts.decode)


def _encodable(value: Any) -> Any:
    """The same plain data, with every text valid as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    return [_encodable(one) for one in value] if isinstance(value, list | tuple) else value


def encoded(value: object) -> bytes:
    """A value as JSON.

    A byte that is not UTF-8 (the kernel allows one in the name of a network link) becomes a
    question mark: a record with a question mark is worth more than none.
    """
    try:
        return msgspec.json.encode(value, enc_hook=parts.encode)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value, enc_hook=parts.encode)))


def _numbers(body: AnyBody) -> Iterator[tuple[str, float]]:
    if isinstance(body, Measured) and body.value is not None:
        yield f"{body.measurement} on {body.component}", body.value
    elif isinstance(body, Sample):
        for readings in (body.values, body.low or {}, body.high or {}):
            yield from readings.items()
    elif isinstance(body, Table):
        cells = (cell for row in body.rows for cell in row)
        yield from (
            (f"a cell of the table {body.name}", cell)
            for cell in cells
            if not isinstance(cell, str)
        )


class Writer:
    """Appends records to one segment.

    The run and the machine are those of the folder and of `root`, unless they are given: in a
    container both have other names.

    Every failure to write raises JournalError: lost evidence must not go unnoticed.
    """

    def __init__(
        self,
        path: Path,
        root: Path = Path("/"),
        run_id: str | None = None,
        machine_id: str | None = None,
    ) -> None:
        self._path = path
        # Size of the file and number of the next record before the last write, which had `_pending`
        # bytes. The head has number -1.
        self._before = (0, -1)
        self._pending = 0
        self._broken = False
        self.head = head = SegmentHead(
            VERSION,
            path.name,
            clock.boot_id(root),
            os.getpid(),
            machine_id or clock.machine_id(root),
            run_id or path.parent.name,
        )
        try:
            # Exclusive: a segment has one writer, and nothing is appended to another writer's file.
            self._file = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            raise self._unwritten(error) from error
        try:
            self._put(lambda _: encoded(head), sync=True)
        except JournalError:
            self.close()
            raise

    def _unwritten(self, error: OSError) -> JournalError:
        code = (
            english(
                "written_by_another",
                "{path}: cannot be written ({why}): another rigproof is writing there: stop it, "
                "then start again",
            )
            if error.errno == errno.EEXIST
            else "unwritten"
        )
        return JournalError(code, path=str(self._path), why=error.strerror)

    def _next(self) -> int:
        """The number of the next record.

        Ctrl-C or the time limit of the test engine may raise between a write and its count, so the
        size of the file decides whether the last write took place.
        """
        size, number = self._before
        found = os.fstat(self._file).st_size
        if self._broken or found not in (
            size,
            size + self._pending,
        ):  # a line after a torn one would look like damage
            raise OSError(errno.EIO, "an earlier record could not be written")
        self._before = (found, number + (found != size))
        return self._before[1]

    def _put(self, line: Callable[[int], bytes], *, sync: bool) -> None:
        try:
            data = line(self._next()) + b"\n"
            self._pending = len(data)
            if os.write(self._file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fsync(self._file)
        except OSError as error:
            self._broken = True
            raise self._unwritten(error) from error

    def write(self, body: AnyBody) -> None:
        """Append one record, and flush it to disk unless it may wait for the next record (`_LAZY`).

        Raises JournalError when the record cannot be written (and for every later record too), and
        ValueError for NaN and infinity.
        """
        for name, value in _numbers(body):
            if not math.isfinite(value):
                raise ValueError(f"{name} is {value}: JSON has no such number")
        boot_s, utc = clock.boot_s(), clock.utc()
        self._put(
            lambda seq: encoded(SegmentLine(seq, boot_s, utc, body)),
            sync=not isinstance(body, _LAZY),
        )

    @property
    def path(self) -> Path:
        """The segment."""
        return self._path

    def sync(self) -> None:
        """Flush everything written so far to disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            self._broken = True
            raise self._unwritten(error) from error

    def close(self) -> None:
        """Close the segment."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment as read: head, entries, and the torn last line if the writer died in it."""

    head: SegmentHead | None
    entries: tuple[Entry, ...]
    torn: str | None


def unreadable_segment(path: Path, error: OSError) -> JournalError:
    """The error for a segment that cannot be read, with its fix."""
    code = (
        english("no_segment", "{path}: cannot be read ({why}): restore it from a copy")
        if isinstance(error, regular_file.NotRegular)
        else english(
            "segment_unread",
            "{path}: cannot be read ({why}): fix its permissions, or run as the user who made the "
            "run",
        )
    )
    return JournalError(code, path=str(path), why=error.strerror)


def most_bytes(path: Path) -> int:
    """The largest allowed size of this segment; telemetry grows with the length of the run."""
    return (
        regular_file.TELEMETRY_BYTES
        if path.name.startswith("telemetry")
        else regular_file.SEGMENT_BYTES
    )


def read_segment(path: Path) -> Segment:
    """Read one segment.

    Raises JournalError, with file and line, for a newer version or damage before the last line.
    """
    try:
        data = regular_file.read(path, most_bytes(path))
    except OSError as error:
        raise unreadable_segment(path, error) from error
    *lines, rest = data.split(b"\n")
    torn = rest.decode("utf-8", errors="replace")[:200] or None
    if not lines:
        return Segment(None, (), torn or "nothing was written")
    head = head_of(path, lines[0])
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            found = decode_line(line)
        except UNDECODABLE as error:
            raise JournalError(
                english(
                    "record_damaged",
                    "{path}, line {line}: is no record ({why}): it was changed or damaged after "
                    "it was written; restore it from a copy",
                ),
                path=str(path),
                line=number,
                why=str(error),
            ) from error
        if found.seq != number - 2:
            raise JournalError(
                "record_out_of_order", path=str(path), line=number, found=found.seq, due=number - 2
            )
        entries.append(Entry(found.seq, found.boot_s, found.utc, found.body, path.name))
    return Segment(head, tuple(entries), torn)


def decode_line(line: bytes) -> SegmentLine:
    """One record. Raises UNDECODABLE."""
    return _DECODER.decode(line)


def head_of(path: Path, line: bytes) -> SegmentHead:
    """The head from the first line of a segment.

    Raises JournalError when the line is no head or the version is newer.
    """
    try:
        version = msgspec.json.decode(line, type=_Version).rigproof_journal
        if version > VERSION:  # first, because a newer head may have another form
            raise JournalError(
                english(
                    "journal_newer",
                    "{path}, line 1: written in format {found}, newer than this rigproof reads "
                    "({known}): install a newer rigproof to read it",
                ),
                path=str(path),
                found=version,
                known=VERSION,
            )
        if version < OLDEST:
            raise ValueError(f"there is no format {version}")
        return msgspec.json.decode(line, type=SegmentHead)
    except UNDECODABLE as error:
        raise JournalError(
            english(
                "no_head",
                "{path}, line 1: is not the head of a rigproof journal ({why}): restore it from a "
                "copy",
            ),
            path=str(path),
            why=str(error),
        ) from error
