"""The records of a journal: what happened in a run, in order."""

from __future__ import annotations

from typing import Literal

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
    """The first record of a run: the plan and its provenance."""

    run_id: str
    plan: Plan
    provenance: dict[str, str]
    machine_id: str


class Observed(_Record, frozen=True, tag="observed"):
    """The inventory before the run, undecoded: `acceptance.machine.observation` reads it.

    `matrix` says how GPUs and network cards reach each other, as rows of cells; the first row is
    the header.
    """

    inventory: object
    matrix: tuple[tuple[str, ...], ...] = ()


class SessionStarted(_Record, frozen=True, tag="session-started"):
    """A session has begun.

    `digest` is the digest of the package that it runs, `collection` the ids of the checks that it
    found.
    """

    session: SessionName
    digest: str
    collection: tuple[str, ...]


class SessionEnded(_Record, frozen=True, tag="session-ended"):
    """A session has ended, as the supervisor saw it.

    `complete` is false when it died, hung, or refused to start. `container` is the engine's id of
    its container; None for a session in place.
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

    `value` is absent when the program gave no finite number; `note` then quotes what it gave.
    """

    check: str
    measurement: str
    component: str
    unit: str
    value: float | None
    serial: str | None = None
    note: str | None = None


class Table(_Record, frozen=True, tag="table"):
    """Values of one component that belong together; they decide nothing.

    Every row has a cell for each of the `columns`.
    """

    check: str
    component: str
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]


class Skipped(_Record, frozen=True, tag="skipped"):
    """A measurement of one component, or a whole check, that was not possible here.

    `reason` includes the cure.
    """

    check: str
    reason: str
    measurement: str | None = None
    component: str | None = None


class CheckEnded(_Record, frozen=True, tag="check-ended"):
    """A check has ended, with the session's own outcome."""

    check: str
    outcome: Outcome
    message: str
    seconds: float


class ToolRan(_Record, frozen=True, tag="tool-ran"):
    """A program was run for a check: its command, exit code and log file."""

    check: str
    argv: tuple[str, ...]
    returncode: int
    seconds: float
    log: str | None = None


class Event(_Record, frozen=True, tag="event"):
    """A message of the kernel, the driver or a load about the hardware.

    `boot_s` is its time in seconds since boot, `source` is "kernel-log", "nvml" or "load".
    `hardware` says whether an error of this kind proves a hardware fault; otherwise it leaves the
    hardware unjudged (out of memory, a kernel bug).
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
    """A foreign process on a GPU under test.

    Recorded when it is first seen, and again with `until_s` when it is gone. `component` is the
    GPU's name; `since_s` and `until_s` are seconds since boot, `memory_bytes` is GPU memory. `pid`,
    `command` and `memory_bytes` are None where they are not known. Without `pid` and `command` it
    is GPU memory that no listed process holds.
    """

    component: str
    since_s: float
    pid: int | None
    command: str | None
    memory_bytes: int | None
    until_s: float | None = None

    @property
    def who(self) -> str:
        """The process in words, for messages."""
        size = f"{self.memory_bytes / GIB:.1f} GiB" if self.memory_bytes is not None else None
        if self.pid is None:
            return self.command or f"{size or 'a part'} of its memory that no listed process holds"
        return f"{self.command or 'a process'} (process {self.pid}{f', {size}' if size else ''})"


class Sample(_Record, frozen=True, tag="sample"):
    """Readings by name at one moment, or, with `span_s`, their means over that many seconds.

    `low` and `high` are the minimum and maximum in that span; a reading without them was constant.
    `component` is the GPU; None for the machine's own sensors.
    """

    values: dict[str, float]
    span_s: float = 0.0
    low: dict[str, float] | None = None
    high: dict[str, float] | None = None
    component: str | None = None


class Note(_Record, frozen=True, tag="note"):
    """Something worth reporting that decides nothing.

    `trouble` marks a note that keeps the run from passing. `progress` marks what a load has proved
    so far; the next such note replaces it.
    """

    text: str
    trouble: bool = False
    progress: bool = False


class Postponed(_Record, frozen=True, tag="postponed"):
    """Nothing was run, or the run was stopped, because the machine is in use.

    `reasons` say by whom, `in_a_row` how many consecutive nights that makes, `most` how many of
    them are a failure.
    """

    reasons: tuple[str, ...]
    in_a_row: int
    most: int


class RunEnded(_Record, frozen=True, tag="run-ended"):
    """The supervisor has ended the run.

    `complete` is false when it stopped before the plan was done; `detail` says why.
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
    """One line of a journal: a record with its segment, sequence number, and two times."""

    seq: int
    boot_s: float
    utc: str
    body: Body
    segment: str = ""
    boot: int = 0
