"""When a run was, how it broke off, what the machine told meanwhile, and the programs that it ran.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from acceptance.core.duration import first_record
from acceptance.core.record import Entry, Event, RunClosed, RunEnded, ToolRan
from acceptance.journal.reader import Journal

_UTC = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z?")
# Sessions write the names of logs: a link leads into the folder of logs beside the page, or there
# is none.
_LOG = re.compile(r"logs/[A-Za-z0-9][A-Za-z0-9._ +,=@\[\]-]{0,199}")


@dataclass(frozen=True, slots=True)
class MachineEvent:
    """An event: `moment` in UTC, and `after_s` seconds after the beginning (None where the
    machine was restarted in between).
    """

    moment: str | None
    after_s: float | None
    event: Event


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program: its command as one line, and the log's name with the address to find it at,
    relative to the page.
    """

    check: str
    command: str
    returncode: int
    seconds: float
    log: str | None
    address: str | None


def moment(utc: str) -> str | None:
    """A record's time as people read it; None for what is no time."""
    match = _UTC.fullmatch(utc)
    return f"{match[1]} {match[2]} UTC" if match else None


def interruption(entries: Sequence[Entry]) -> RunClosed | None:
    """How a later start found the run, where it did not come to its end."""
    ended = any(isinstance(entry.body, RunEnded) for entry in entries)
    closed = [entry.body for entry in entries if isinstance(entry.body, RunClosed)]
    return closed[-1] if closed and not ended else None


def events(entries: Sequence[Entry]) -> Iterator[MachineEvent]:
    """What the machine told by itself, in order."""
    start = first_record(entries)
    for entry in entries:
        if isinstance(entry.body, Event):
            at = entry.body.boot_s if entry.body.boot_s is not None else entry.boot_s
            same = start is not None and entry.boot == start.boot
            yield MachineEvent(
                moment(entry.utc), at - start.boot_s if start and same else None, entry.body
            )


def programs(journal: Journal) -> Iterator[ProgramRun]:
    """The programs that were run for checks."""
    for entry in journal.entries:
        if isinstance(body := entry.body, ToolRan):
            safe = body.log is not None and _LOG.fullmatch(body.log)
            address = quote(body.log) if safe and body.log else None
            yield ProgramRun(
                body.check, " ".join(body.argv), body.returncode, body.seconds, body.log, address
            )
