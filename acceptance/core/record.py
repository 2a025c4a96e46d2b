"""The records of a journal: what a run wrote down, in the order in which it happened."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from acceptance.core.collection import SessionName
from acceptance.core.limit import GIB
from acceptance.core.plan import Plan

Outcome = Literal["pass", "fail", "error", "skip"]
Severity = Literal["fatal", "error", "warning", "info"]
HARMFUL: tuple[Severity, ...] = ("fatal", "error")


class _Record(msgspec.Struct, frozen=True, tag_field="record"):
    pass


class RunStarted(_Record, frozen=True, tag="run-started"):
    """First record of a run: the plan and all that says where it came from."""

    run_id: str
    plan: Plan
    provenance: dict[str, str]
    machine_id: str


class Observed(_Record, frozen=True, tag="observed"):
    """The machine as it showed itself before the run: an inventory, as plain data.

    `matrix` is how GPUs and network cards reach each other, in rows of cells of which the first is
    the head.
    """

    inventory: dict[str, Any]
    matrix: tuple[tuple[str, ...], ...] = ()


class SessionStarted(_Record, frozen=True, tag="session-started"):
    """A session has begun; `digest` is of the package it runs, `collection`
    lists the checks it found.
    """

    session: SessionName
    digest: str
    collection: tuple[str, ...]


class SessionEnded(_Record, frozen=True, tag="session-ended"):
    """The supervisor's word on how a session ended.

    `complete` is false when it died, hung, or refused to start.

    `container` is the engine's id of the container that it was in; None for one in place.
    """

    session: SessionName
    complete: bool
    detail: str
    seconds: float
    container: str | None = None


class CheckStarted(_Record, frozen=True, tag="check-started"):
    """A check has begun."""

    check: str


class Measured(_Record, frozen=True, tag="measured"):
    """One measured value.

    `value` is absent when the program gave something that is no finite number, which `note` then
    quotes.
    """

    check: str
    measurement: str
    component: str
    unit: str
    value: float | None
    serial: str | None = None
    note: str | None = None


class Table(_Record, frozen=True, tag="table"):
    """Figures that belong together, of one component; they decide nothing.

    Every row has a cell for each of the `columns`.
    """

    check: str
    component: str
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]


class Skipped(_Record, frozen=True, tag="skipped"):
    """A measurement of one component, or a whole check, that could not be taken
    here, and the cure.
    """

    check: str
    reason: str
    measurement: str | None = None
    component: str | None = None


class CheckEnded(_Record, frozen=True, tag="check-ended"):
    """A check has ended, with the session's own word on it."""

    check: str
    outcome: Outcome
    message: str
    seconds: float


class ToolRan(_Record, frozen=True, tag="tool-ran"):
    """A program was run for a check: its command, how it ended, and the log
    that holds what it printed.
    """

    check: str
    argv: tuple[str, ...]
    returncode: int
    seconds: float
    log: str | None = None


class Event(_Record, frozen=True, tag="event"):
    """Something that the machine reported by itself; `boot_s` is when, in seconds since boot,
    `source` who told: "kernel-log", "nvml" or
    "load".

    `hardware` says whether an error of this kind proves a fault of the machine, or leaves it
    unjudged (out of memory, a kernel bug).
    """

    kind: str
    severity: Severity
    text: str
    meaning: str
    action: str
    code: int | str | None = None
    component: str | None = None
    boot_s: float | None = None
    hardware: bool = True
    source: str = "kernel-log"


class ForeignProcess(_Record, frozen=True, tag="foreign-process"):
    """Somebody else's process on a GPU that is tested: told when it is seen, and once more, with
    `until_s`, when it has gone.

    `component` is the GPU's name; `since_s` and `until_s` are seconds since boot, `memory_bytes` is
    of the GPU's memory. `pid`, `command` and `memory_bytes` are None where nobody tells them;
    without pid and command it is memory that no listed process holds.
    """

    component: str
    since_s: float
    pid: int | None
    command: str | None
    memory_bytes: int | None
    until_s: float | None = None

    @property
    def who(self) -> str:
        """As people are told of it."""
        size = f"{self.memory_bytes / GIB:.1f} GiB" if self.memory_bytes is not None else None
        if self.pid is None:
            return self.command or f"{size or 'a part'} of its memory that no listed process holds"
        return f"{self.command or 'a process'} (process {self.pid}{f', {size}' if size else ''})"


class Sample(_Record, frozen=True, tag="sample"):
    """Telemetry: readings by name at one moment, or, with `span_s`, their means over that many
    seconds with minimum and maximum.

    A reading that has a mean and no extremes was the same all the time. `component` is the GPU that
    they are of; None for the machine's own sensors.
    """

    values: dict[str, float]
    span_s: float = 0.0
    low: dict[str, float] | None = None
    high: dict[str, float] | None = None
    component: str | None = None


class Note(_Record, frozen=True, tag="note"):
    """Something worth telling the reader of the report that decides nothing; `trouble` marks what
    keeps the run from passing.

    `progress` marks what a load had proved until then: the next of its kind takes its place.
    """

    text: str
    trouble: bool = False
    progress: bool = False


class Postponed(_Record, frozen=True, tag="postponed"):
    """Nothing was run, or no more, because the machine is in use: by whom, and how many nights in a
    row that makes,
    of `most` that may be.
    """

    reasons: tuple[str, ...]
    in_a_row: int
    most: int


class RunEnded(_Record, frozen=True, tag="run-ended"):
    """The supervisor came to the end of the run; `complete` is false when it stopped before the
    plan was done, and `detail` says why.
    """

    complete: bool
    detail: str


class RunClosed(_Record, frozen=True, tag="run-closed"):
    """A later start found this run unfinished and closed it."""

    running: str | None
    rebooted: bool
    last_telemetry: dict[str, float]
    detail: str


Body = (
    RunStarted
    | Observed
    | SessionStarted
    | SessionEnded
    | CheckStarted
    | Measured
    | Table
    | Skipped
    | CheckEnded
    | ToolRan
    | Event
    | ForeignProcess
    | Sample
    | Note
    | Postponed
    | RunEnded
    | RunClosed
)


class Entry(msgspec.Struct, frozen=True):
    """One line of a journal: a record with its place (segment and sequence
    number), and its time by two clocks.
    """

    seq: int
    boot_s: float
    utc: str
    body: Body
    segment: str = ""
    boot: int = 0
