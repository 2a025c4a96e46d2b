"""Reads the journal of a run: all segments merged, or one segment while it is being written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.message import Listed, Message, UserError, english
from acceptance.core.record import Entry
from acceptance.journal.segment import (
    SEALED_SINCE,
    UNDECODABLE,
    JournalError,
    SegmentHead,
    decode_line,
    head_of,
    most_bytes,
    read_segment,
    unreadable_segment,
)

SUPERVISOR = "journal.jsonl"
TELEMETRY = "telemetry.jsonl"
GPU_TELEMETRY = "telemetry-gpu.jsonl"
# A number follows. A start that was killed while closing leaves one behind; the next uses another.
CLOSING = "journal-closed"
_SHOWN = 3  # the newest runs in the message about a folder that holds none


class NoRun(JournalError, UserError):
    """The folder holds no run."""


def _no_run(folder: Path) -> NoRun:
    """The error for a folder without a run; it lists the newest runs in it, else beside it."""
    for place in (folder, folder.parent):
        with contextlib.suppress(OSError):
            runs = [path.parent for path in place.glob(f"*/{SUPERVISOR}")]
            # The name of a run begins with its date; `latest` is a run by another name.
            newest = sorted((str(run) for run in runs if not run.is_symlink()), reverse=True)
            if newest:
                shown = Listed.first(newest, _SHOWN)
                return NoRun(
                    english(
                        "no_run_among",
                        "{folder}: holds no run (no {file}): give the folder of one run; the "
                        "newest here: {newest}",
                    ),
                    folder=str(folder),
                    file=SUPERVISOR,
                    newest=shown,
                )
    code = (
        english(
            "no_run_yet",
            "{folder}: there is no run yet (no {file}): make one with `rigproof accept`",
        )
        if folder.name == "latest"
        else english(
            "no_run",
            "{folder}: holds no run (no {file}): give the folder of one run, such as "
            "reports/latest",
        )
    )
    return NoRun(code, folder=str(folder), file=SUPERVISOR)


@dataclass(frozen=True, slots=True)
class Journal:
    """A whole run: the entries of all segments in order of time, and what was lost.

    `torn` has a message for each segment that ends in half a line. `heads` are by file name.
    `unread` says of each segment why it could not be read; its records are not here.
    """

    run_dir: Path
    entries: tuple[Entry, ...]
    torn: tuple[Message, ...]
    boot_ids: tuple[str, ...]
    pid: int | None
    machine_id: str | None = None
    heads: Mapping[str, SegmentHead] = field(default_factory=dict)
    unread: tuple[Message, ...] = ()


def read(run_dir: Path, *, telemetry: bool = False) -> Journal:
    """Read all segments of a run, merged in order of boot and boot-time clock.

    Telemetry is long, so it is read only on request. A segment of a run with seals that cannot be
    read is left out and named.

    Raises JournalError when the folder holds no run, when the supervisor's segment cannot be read,
    and, of a run without seals, any other one.
    """
    if not (run_dir / SUPERVISOR).exists():
        raise _no_run(run_dir)
    names = sorted(path.name for path in run_dir.glob("journal-*.jsonl"))
    ordered = [SUPERVISOR, *sorted(names, key=lambda name: name.startswith(CLOSING))]
    if telemetry:
        ordered += [name for name in (TELEMETRY, GPU_TELEMETRY) if (run_dir / name).exists()]
    boots: list[str] = []
    merged: list[tuple[tuple[int, float, int, int], Entry]] = []
    torn: list[Message] = []
    heads: dict[str, SegmentHead] = {}
    unread: list[Message] = []
    for place, name in enumerate(ordered):
        try:
            segment = read_segment(run_dir / name)
        except JournalError as error:
            own = heads.get(SUPERVISOR)
            if own is None or own.rigproof_journal < SEALED_SINCE:
                raise
            unread.append(error.message)
            continue
        if segment.torn:
            told = {"segment": name, "line": repr(segment.torn)}
            torn.append(
                Message(
                    english(
                        "torn_segment", "{segment} ends in half a line, which was dropped: {line}"
                    ),
                    told,
                )
            )
        if segment.head is None:
            continue
        heads[name] = segment.head
        if segment.head.boot_id not in boots:
            boots.append(segment.head.boot_id)
        boot = boots.index(segment.head.boot_id)
        for entry in segment.entries:
            dated = msgspec.structs.replace(entry, boot=boot)
            merged.append(((boot, entry.boot_s, place, entry.seq), dated))
    merged.sort(key=lambda pair: pair[0])
    own = heads.get(SUPERVISOR)
    return Journal(
        run_dir,
        tuple(entry for _, entry in merged),
        tuple(torn),
        tuple(boots),
        own.pid if own else None,
        own.machine_id if own else None,
        heads,
        tuple(unread),
    )


def telemetry_ends(run_dir: Path) -> Iterator[tuple[str, SegmentHead, tuple[Entry, ...]]]:
    """Name, head, and first and last records of a run's telemetry, which `read` leaves out.

    None of an empty file. Raises JournalError when one cannot be read.
    """
    for path in (run_dir / TELEMETRY, run_dir / GPU_TELEMETRY):
        first, begin = _beginning(path)
        if first.endswith(b"\n"):
            yield path.name, head_of(path, first), (*begin, *read_last_entries(path)[-1:])


def read_first_record(run_dir: Path) -> tuple[SegmentHead, Entry | None]:
    """The head of a run's journal and its first record, without reading the rest.

    The record is None if the journal has no complete one.

    Raises JournalError when the folder holds no run or its beginning cannot be read.
    """
    path = run_dir / SUPERVISOR
    if not path.exists():
        raise _no_run(run_dir)
    line, entries = _beginning(path)
    return head_of(path, line), next(iter(entries), None)


def _beginning(path: Path) -> tuple[bytes, tuple[Entry, ...]]:
    """The line of a segment's head, and its first record where that is whole.

    Empty where there is no file.
    """
    try:
        with regular_file.open_read(path, most_bytes(path)) as file:
            lines = regular_file.lines(file, path)
            first, second = next(lines, b""), next(lines, b"")
    except FileNotFoundError:
        return b"", ()
    except OSError as error:
        raise unreadable_segment(path, error) from error
    return first, (_entry(second, path, 2),) if second.endswith(b"\n") else ()


def read_last_entries(path: Path, size: int = 1 << 18) -> tuple[Entry, ...]:
    """The last entries of a segment, for a segment too long to read as a whole.

    Reads the last `size` bytes. Returns no entries if there is no file.

    Raises JournalError when the file cannot be read or a complete line in it is no record.
    """
    try:
        with regular_file.open_read(path, most_bytes(path)) as file:
            begin = max(0, file.seek(0, 2) - size)
            file.seek(begin)
            lines = file.read(size).split(b"\n")
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise unreadable_segment(path, error) from error
    # The first line is the head or begins before these bytes. After the last line end comes nothing
    # or a torn line.
    return tuple(_entry(line, path) for line in lines[1:-1])


def _entry(line: bytes, path: Path, number: int | None = None) -> Entry:
    try:
        found = decode_line(line)
    except UNDECODABLE as error:
        if number is None:
            raise JournalError(
                english(
                    "no_record_near_end",
                    "{path}, near its end: is no record ({why}): restore it from a copy",
                ),
                path=str(path),
                why=str(error),
            ) from error
        raise JournalError(
            english(
                "no_record", "{path}, line {line}: is no record ({why}): restore it from a copy"
            ),
            path=str(path),
            line=number,
            why=str(error),
        ) from error
    return Entry(found.seq, found.boot_s, found.utc, found.body, path.name)


class Tail:
    """Follows a segment that is being written; each call returns only the new entries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._lines = 0

    def new(self) -> list[Entry]:
        """Entries not returned before; an empty list as long as there is no such file.

        Raises JournalError as `each` does.
        """
        return list(self.each())

    def each(self) -> Iterator[Entry]:
        """Like `new`, but one by one, so that a segment of days is never in memory as a whole.

        Raises JournalError when the segment cannot be read, a complete line is no record, or a
        record is out of sequence.
        """
        try:
            with regular_file.open_read(self._path, most_bytes(self._path)) as file:
                file.seek(self._offset)
                for line in regular_file.lines(file, self._path):
                    if not line.endswith(b"\n"):  # the writer is still at this line
                        return
                    self._offset += len(line)
                    self._lines += 1
                    if self._lines > 1:  # line 1 is the head
                        yield self._next(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise unreadable_segment(self._path, error) from error

    def _next(self, line: bytes) -> Entry:
        entry = _entry(line, self._path, self._lines)
        if entry.seq != self._lines - 2:
            due = self._lines - 2
            raise JournalError(
                english(
                    "record_out_of_order",
                    "{path}, line {line}: record {found} stands where {due} is due: lines were "
                    "lost or moved; restore it from a copy",
                ),
                path=str(self._path),
                line=self._lines,
                found=entry.seq,
                due=due,
            )
        return entry
