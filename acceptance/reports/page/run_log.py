"""The log of a run: its time, how it was cut off, its events, and the programs it ran. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from acceptance.core.evidence import ToolRan
from acceptance.core.record import Entry, Event, RunClosed, RunEnded
from acceptance.journal.run import Run

_UTC = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z?")
# Sessions write the names of logs: a link must lead into the folder of logs beside the page.
_LOG = re.compile(r"logs/[A-Za-z0-9][A-Za-z0-9._ +,=@\[\]-]{0,199}")


@dataclass(frozen=True, slots=True)
class MachineEvent:
    """An event, with its time in UTC.

    `after_s` is in seconds since the run began; None if the machine was restarted in between.
    """

    moment: str | None
    after_s: float | None
    event: Event


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program's run.

    `command` is one line, `log` the log's name, and `address` its URL relative to the page.
    """

    check: str
    command: str
    returncode: int
    seconds: float
    log: str | None
    address: str | None


def moment(utc: str) -> str | None:
    """A record's time for people; None if it is not a time."""
    match = _UTC.fullmatch(utc)
    return f"{match[1]} {match[2]} UTC" if match else None


def interruption(entries: Sequence[Entry]) -> RunClosed | None:
    """How a later start closed the run; None if the run ended by itself."""
    ended = any(isinstance(entry.body, RunEnded) for entry in entries)
    closed = [entry.body for entry in entries if isinstance(entry.body, RunClosed)]
    return closed[-1] if closed and not ended else None


def events(run: Run) -> Iterator[MachineEvent]:
    """The events of the run, in order."""
    for entry in run.entries:
        if isinstance(entry.body, Event):
            at = entry.body.boot_s if entry.body.boot_s is not None else entry.boot_s
            after_s = at - run.first.boot_s if entry.boot == run.first.boot else None
            yield MachineEvent(moment(entry.utc), after_s, entry.body)


def programs(entries: Sequence[Entry]) -> Iterator[ProgramRun]:
    """The programs that the checks ran."""
    for entry in entries:
        if isinstance(body := entry.body, ToolRan):
            safe = body.log is not None and _LOG.fullmatch(body.log)
            address = quote(body.log) if safe and body.log else None
            yield ProgramRun(
                body.check, " ".join(body.argv), body.returncode, body.seconds, body.log, address
            )
