"""The journal of a run: append-only JSON lines, one segment a writer, crash-safe; and reading the segments back merged.

A line is one whole record. It reaches the disk (fsync) at check boundaries and events. A writer that dies may leave half a line at the
end of its own segment, never in the middle: that line is dropped on reading, and said.
"""

from __future__ import annotations

import errno
import math
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from acceptance import clock
from acceptance.judge.record import Body, Entry, Event, Measured, Observed, Sample, Skipped, ToolRan

VERSION = 1
SUPERVISOR = "journal.jsonl"
TELEMETRY = "telemetry.jsonl"
CLOSING = "journal-closed"  # and a number: a start that was killed while closing leaves one behind, and the next takes another
# What may be lost to a power cut without changing what the run proves: the next record that does matter carries them along.
_LAZY = (Measured, Skipped, ToolRan, Sample, Observed)


class JournalError(Exception):
    """A journal cannot be read or written; the message is one sentence with file, line and cure."""


class NoRun(JournalError):
    """The folder holds no run."""


class Head(msgspec.Struct, frozen=True):
    """First line of a segment: which version of the format it is in, who writes it, and during which boot of the machine."""

    rigproof_journal: int
    segment: str
    boot_id: str
    pid: int


class _Line(msgspec.Struct, frozen=True):
    seq: int
    boot_s: float
    utc: str
    body: Body


class Writer:
    """Appends records to one segment. Every failure to write raises JournalError: evidence that is lost must not go unnoticed."""

    def __init__(self, path: Path, root: Path = Path("/")) -> None:
        self._path = path
        self._seq = 0
        self._broken = False
        head = Head(VERSION, path.name, clock.boot_id(root), os.getpid())
        try:
            # Exclusive: a segment has one writer, and nothing is ever written into what another one left.
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._put(msgspec.json.encode(head) + b"\n", sync=True)
        except OSError as error:
            raise JournalError(f"{path}: cannot be written ({error.strerror})") from error

    def _put(self, line: bytes, *, sync: bool) -> None:
        if self._broken:  # a line after a torn one could not be told from damage
            raise OSError(errno.EIO, "an earlier record could not be written")
        self._broken = True
        if os.write(self._file, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if sync:
            os.fsync(self._file)
        self._broken = False

    def write(self, body: Body) -> None:
        """Append one record, and bring it to the disk unless it is one that the next record carries along."""
        if isinstance(body, Measured) and body.value is not None and not math.isfinite(body.value):
            raise ValueError(f"{body.measurement} on {body.component} is {body.value}: JSON has no such number")
        line = _Line(self._seq, clock.boot_s(), clock.utc(), body)
        try:
            self._put(msgspec.json.encode(line) + b"\n", sync=not isinstance(body, _LAZY) or isinstance(body, Event))
        except OSError as error:
            raise JournalError(
                f"{self._path}: cannot be written ({error.strerror}): make room, then start again"
            ) from error
        self._seq += 1

    def sync(self) -> None:
        """Bring everything written so far to the disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise JournalError(
                f"{self._path}: cannot be written ({error.strerror}): make room, then start again"
            ) from error

    def close(self) -> None:
        """Close the segment."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment as read: its head, its entries, and the torn last line, if the writer died in it."""

    head: Head | None
    entries: tuple[Entry, ...]
    torn: str | None


def read_segment(path: Path) -> Segment:
    """Read one segment.

    Raises JournalError, naming file and line, when it is of a newer version or damaged before its last line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read ({error.strerror})") from error
    *lines, rest = data.split(b"\n")
    torn = rest.decode("utf-8", errors="replace")[:200] or None
    if not lines:
        return Segment(None, (), torn or "nothing was written")
    head = _head(path, lines[0])
    entries = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            found = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError as error:
            told = "it was changed or damaged after it was written; restore it from a copy"
            raise JournalError(f"{path}, line {number}: is no record ({error}): {told}") from error
        if found.seq != number - 2:
            raise JournalError(
                f"{path}, line {number}: record {found.seq} stands where {number - 2} is due: lines were lost or moved"
            )
        entries.append(Entry(found.seq, found.boot_s, found.utc, found.body, path.name))
    return Segment(head, tuple(entries), torn)


def _head(path: Path, line: bytes) -> Head:
    try:
        head = msgspec.json.decode(line, type=Head)
    except msgspec.DecodeError as error:
        raise JournalError(f"{path}, line 1: is not the head of a rigproof journal ({error})") from error
    if head.rigproof_journal > VERSION:
        newer = f"format {head.rigproof_journal}, newer than this rigproof reads ({VERSION})"
        raise JournalError(f"{path}, line 1: written in {newer}: install a newer rigproof to read it")
    return head


@dataclass(frozen=True, slots=True)
class Journal:
    """A whole run: the entries of all segments in the order in which they happened, and what was torn."""

    run_dir: Path
    entries: tuple[Entry, ...]
    torn: tuple[str, ...]
    boot_ids: tuple[str, ...]
    pid: int | None


def read(run_dir: Path, *, telemetry: bool = False) -> Journal:
    """Read a run's segments merged, in order of boot and boot-time clock; telemetry only when asked for, because it is long.

    Raises JournalError when the folder holds no run, or a segment cannot be read.
    """
    if not (run_dir / SUPERVISOR).is_file():
        raise NoRun(f"{run_dir}: holds no run (no {SUPERVISOR}): give the folder of one run, such as reports/latest")
    names = sorted(path.name for path in run_dir.glob("journal-*.jsonl"))
    ordered = [SUPERVISOR, *sorted(names, key=lambda name: name.startswith(CLOSING))]
    if telemetry and (run_dir / TELEMETRY).is_file():
        ordered.append(TELEMETRY)
    boots: list[str] = []
    merged: list[tuple[tuple[int, float, int, int], Entry]] = []
    torn = []
    pid: int | None = None
    for place, name in enumerate(ordered):
        segment = read_segment(run_dir / name)
        if segment.torn:
            torn.append(f"{name} ends in half a line, which was dropped: {segment.torn!r}")
        if segment.head is None:
            continue
        if name == SUPERVISOR:
            pid = segment.head.pid
        if segment.head.boot_id not in boots:
            boots.append(segment.head.boot_id)
        boot = boots.index(segment.head.boot_id)
        for entry in segment.entries:
            dated = msgspec.structs.replace(entry, boot=boot)
            merged.append(((boot, entry.boot_s, place, entry.seq), dated))
    merged.sort(key=lambda pair: pair[0])
    return Journal(run_dir, tuple(entry for _, entry in merged), tuple(torn), tuple(boots), pid)


class Tail:
    """Follows a segment that is being written: each call of `new` gives the entries that were added since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines = 0

    def new(self) -> list[Entry]:
        """Entries not given before; an empty list while there is no such file."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        entries = []
        for line in whole.splitlines():
            self._lines += 1
            if self._lines > 1:  # the first is the head
                try:
                    found = msgspec.json.decode(line, type=_Line)
                except msgspec.DecodeError as error:
                    raise JournalError(f"{self._path}, line {self._lines}: is no record ({error})") from error
                entries.append(Entry(found.seq, found.boot_s, found.utc, found.body, self._path.name))
        return entries
