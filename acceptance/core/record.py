"""The records of a journal that a verdict is made of: what happened in a run, in order.

With them stands what a machine file declares, as values by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

import msgspec

from acceptance.core.limit import GIB
from acceptance.core.message import Message, Text, Texts, Unmeasured, Value, english
from acceptance.core.parts import Component
from acceptance.core.plan import LimitSet, Plan, SessionName

Fact = bool | int | float | str


class OwnLimit(msgspec.Struct, frozen=True):
    """A limit of the machine file's own; without `component` it is of every one."""

    measurement: str
    unit: str
    component: str | None = None
    low: float | None = None
    high: float | None = None


class Declared(msgspec.Struct, frozen=True):
    """The declared facts by key (`gpus`, `gpu0.model`), and limits; none without a machine file."""

    facts: dict[str, Fact] = {}
    limits: tuple[OwnLimit, ...] = ()


Outcome = Literal["pass", "fail", "error", "skip"]
Severity = Literal["fatal", "error", "warning", "info"]
HARMFUL: tuple[Severity, ...] = ("fatal", "error")


class Body(msgspec.Struct, frozen=True, tag_field="record"):
    """What a line of a journal says. `acceptance.core.evidence` has the union of all kinds."""


class RunStarted(Body, frozen=True, tag="run-started"):
    """The first record of a run: the plan and its provenance."""

    run_id: str
    plan: Plan
    provenance: dict[str, str]
    machine_id: str
    selftest: Text | None = None  # the score of the last; None in older journals
    limits: LimitSet | None = None  # what the plan's limits come from; None in older journals
    declared: Declared | None = None  # what the machine file declares; None in older journals


class SessionStarted(Body, frozen=True, tag="session-started"):
    """A session has begun.

    `digest` is the digest of the package that it runs, `collection` the ids of the checks that it
    found in the files of its share. `site_digest` is the digest of the site's own checks; None for
    those of the package.
    """

    session: SessionName
    digest: str
    collection: tuple[str, ...]
    site_digest: str | None = None


class SessionEnded(Body, frozen=True, tag="session-ended"):
    """A session has ended, as the supervisor saw it.

    `complete` is false when it died, hung, or refused to start. `container` is the engine's id of
    its container; None for a session in place.
    """

    session: SessionName
    complete: bool
    detail: Text
    seconds: float
    container: str | None = None


class CheckStarted(Body, frozen=True, tag="check-started"):
    """A check has begun."""

    check: str


class Measured(Body, frozen=True, tag="measured"):
    """One measured value.

    `value` is absent when the program gave no finite number; `note` then quotes what it gave.
    """

    check: str
    measurement: str
    component: Component
    unit: str
    value: float | None
    serial: str | None = None
    note: Text | None = None


class Skipped(Body, frozen=True, tag="skipped"):
    """A measurement of one component, or a whole check, that was not possible here.

    `reason` includes the cure. `follows` is a check that this one builds on: a waiver of its skip
    covers this one too. `why` is None only in the journals of an older rigproof.
    """

    check: str
    reason: Texts
    measurement: str | None = None
    component: Component | None = None
    follows: str | None = None
    why: Unmeasured | None = None


class CheckEnded(Body, frozen=True, tag="check-ended"):
    """A check has ended, with the session's own outcome.

    `codes` are those of the findings that decided it, where the check judged its own values; None
    in the journals of an older rigproof.
    """

    check: str
    outcome: Outcome
    message: Texts
    seconds: float
    codes: tuple[str, ...] | None = None


class Suspicion(msgspec.Struct, frozen=True):
    """Why an Xid of which programs are the usual cause suspects a GPU, where a good load shows it.

    `gpu` is the tested GPU; `pid` and `command` are the process that the driver names, None where
    it names none. `consequence` is true of an Xid that another one, or the end of a program, may
    have caused.
    """

    gpu: Component
    pid: int | None = None
    command: str | None = None
    consequence: bool = False


class Event(Body, frozen=True, tag="event"):
    """A message of the kernel, the driver or a load about the hardware.

    `boot_s` is its time in seconds since boot, `source` is "kernel-log", "nvml" or "load".
    `catalog` is what NVIDIA's Xid catalog asks for, in its words, at once and then.
    `hardware` says whether an error of this kind proves a hardware fault; otherwise it leaves the
    hardware unjudged (out of memory, a kernel bug). `action` and a plain `meaning` are texts
    of rigproof's tables, which each language translates. `suspicion` is that of an Xid that a good
    load never causes; None for any other event, and in older journals. `counts` are the
    measurements that may count a wrong result of a load.
    """

    kind: str
    severity: Severity
    text: str
    meaning: Text
    action: str
    code: int | str | None = None
    component: Component | None = None
    boot_s: float | None = None
    hardware: bool = True
    source: str = "kernel-log"
    catalog: tuple[str, ...] = ()
    suspicion: Suspicion | None = None
    counts: tuple[str, ...] = ()


class ForeignProcess(Body, frozen=True, tag="foreign-process"):
    """A foreign process on a GPU under test.

    Recorded when it is first seen, and again with `until_s` when it is gone. `component` is the
    GPU's name; `since_s` and `until_s` are seconds since boot, `memory_bytes` is GPU memory. `pid`,
    `command` and `memory_bytes` are None where they are not known. Without `pid` and `command` it
    is GPU memory that no listed process holds.
    """

    component: Component
    since_s: float
    pid: int | None
    command: str | None
    memory_bytes: int | None
    until_s: float | None = None

    @property
    def who(self) -> Text:
        """The process, for messages."""
        if self.pid is not None:
            return process(self.pid, self.command, self.memory_bytes)
        if self.command:
            return self.command
        if self.memory_bytes is None:
            return Message(
                english(
                    "gpu_memory_part_of_nobody", "a part of its memory that no listed process holds"
                )
            )
        return Message(
            english("gpu_memory_of_nobody", "{size} of its memory that no listed process holds"),
            _size(self.memory_bytes),
        )


class GpuUser(Body, frozen=True, tag="gpu-user"):
    """A process on a GPU under test that disturbs no check: the run's `own`, or one that draws.

    Recorded when it is first seen; of one that draws again, with `until_s`, when it is gone.
    `component` is the GPU's name, `since_s` and `until_s` are seconds since boot.
    """

    component: Component
    since_s: float
    pid: int
    command: str | None
    own: bool
    until_s: float | None = None


class Stopped(Body, frozen=True, tag="stopped"):
    """The programs of a check, or those of a whole session, get a signal to end.

    `ended`: the signal was not the run's own, and is known from the end of a program. `component`
    is what the program loads, None where it names nothing.
    """

    check: str | None = None
    session: SessionName | None = None
    ended: bool = False
    component: Component | None = None


def process(pid: int, command: str | None, memory_bytes: int | None) -> Message:
    """A process on a GPU: its command, its process id, and its share of the GPU's memory."""
    held: dict[str, Value] = {"pid": pid, **_size(memory_bytes)}
    if not command:
        return Message(english("unnamed_process", "a process (process {pid}[, {size}])"), held)
    return Message(
        english("process", "{command} (process {pid}[, {size}])"), {"command": command, **held}
    )


def _size(memory_bytes: int | None) -> dict[str, str]:
    return {} if memory_bytes is None else {"size": f"{memory_bytes / GIB:.1f} GiB"}


class Note(Body, frozen=True, tag="note"):
    """Something worth reporting that decides nothing.

    `trouble` marks a note that keeps the run from passing. `progress` marks what a load has proved
    so far; the next such note replaces it.
    """

    text: Text
    trouble: bool = False
    progress: bool = False


class Postponed(Body, frozen=True, tag="postponed"):
    """Nothing was run, or the run was stopped, because the machine is in use.

    `reasons` say by whom, `in_a_row` how many consecutive nights that makes, `most` how many of
    them are a failure.
    """

    reasons: tuple[Text, ...]
    in_a_row: int
    most: int


class RunEnded(Body, frozen=True, tag="run-ended"):
    """The supervisor has ended the run.

    `complete` is false when it stopped before the plan was done; `detail` says why.
    """

    complete: bool
    detail: Text


class RunClosed(Body, frozen=True, tag="run-closed"):
    """A later start found this run unfinished and closed it.

    `running` are the checks that had begun and not ended; an older rigproof named one, or None.
    """

    running: tuple[str, ...] | str | None
    rebooted: bool
    last_telemetry: dict[str, float]
    detail: Text


class Entry(msgspec.Struct, frozen=True):
    """One line of a journal: a record with its segment, sequence number, and two times."""

    seq: int
    boot_s: float
    utc: str
    body: Body
    segment: str = ""
    boot: int = 0

    def __hash__(self) -> int:
        return hash((self.segment, self.seq))


_Kind = TypeVar("_Kind", bound=Body)


def records(entries: Iterable[Entry], kind: type[_Kind]) -> Iterator[tuple[Entry, _Kind]]:
    """The records of one kind, in order, each with its entry."""
    return ((entry, entry.body) for entry in entries if isinstance(entry.body, kind))
