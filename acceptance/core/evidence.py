"""The records of a journal that no verdict is made of, and all kinds of them together."""

from __future__ import annotations

from typing import Any

import msgspec

from acceptance.core.parts import Component
from acceptance.core.record import (
    Body,
    CheckEnded,
    CheckStarted,
    Event,
    ForeignProcess,
    GpuUser,
    Measured,
    Note,
    Postponed,
    RunClosed,
    RunEnded,
    RunStarted,
    SessionEnded,
    SessionStarted,
    Skipped,
    Stopped,
)


class Observed(Body, frozen=True, tag="observed"):
    """The inventory before the run, undecoded: `acceptance.machine.observation` reads it.

    `matrix` says how GPUs and network cards reach each other, as rows of cells; the first row is
    the header.
    """

    inventory: Any
    matrix: tuple[tuple[str, ...], ...] = ()


class Table(Body, frozen=True, tag="table"):
    """Values of one component that belong together; they decide nothing.

    Every row has a cell for each of the `columns`.
    """

    check: str
    component: Component
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[float | str, ...], ...]


class ToolRan(Body, frozen=True, tag="tool-ran"):
    """A program was run for a check: its command, exit code and log file."""

    check: str
    argv: tuple[str, ...]
    returncode: int
    seconds: float
    log: str | None = None


class PartBegan(Body, frozen=True, tag="part-began"):
    """A part of a stage began to load a component; its end is in the ToolRan with the same log.

    Written at the start, so that events and samples can be attributed where the machine does not
    survive its load.
    """

    check: str
    component: Component
    log: str


class Sample(Body, frozen=True, tag="sample"):
    """Readings by name at one moment, or, with `span_s`, their means over that many seconds.

    `low` and `high` are the minimum and maximum in that span; a reading without them was constant.
    `component` is the GPU; None for the machine's own sensors.
    """

    values: dict[str, float]
    span_s: float = 0.0
    low: dict[str, float] | None = None
    high: dict[str, float] | None = None
    component: Component | None = None


class Refused(Body, frozen=True, tag="refused"):
    """Readings of a GPU that failed to answer when they were first asked for, each with the error.

    A reading that the driver does not offer is not among them.
    """

    component: Component
    errors: dict[str, str]


class Scratch(Body, frozen=True, tag="scratch"):
    """A folder whose filesystem the run tests, and how much it may write there.

    `mount` to `free_bytes` are those of `acceptance.machine.filesystem`. `kept_bytes` of
    `write_bytes` stay for the nights; without `keep`, what an earlier run kept is removed.
    `sealed_bytes` is the size of the file that an earlier run kept there, 0 without one.
    """

    path: str
    component: Component
    mount: str
    kind: str
    source: str
    disks: tuple[str, ...]
    layers: tuple[str, ...]
    free_bytes: int
    write_bytes: int
    kept_bytes: int
    keep: bool
    sealed_bytes: int


class SealedFile(msgspec.Struct, frozen=True):
    """A file of the evidence: its name in the run's folder, its lines, and its SHA-256.

    `lines` counts line ends. Of the segment that holds the seal both are of what stands before it.
    """

    name: str
    lines: int
    sha256: str


class Sealed(Body, frozen=True, tag="sealed"):
    """The last record of a run: every file of its evidence, and the digest over them."""

    digest: str
    files: tuple[SealedFile, ...]


# What a line of a journal may hold.
AnyBody = (
    RunStarted
    | Observed
    | SessionStarted
    | SessionEnded
    | CheckStarted
    | Measured
    | Table
    | Refused
    | Skipped
    | CheckEnded
    | ToolRan
    | PartBegan
    | Scratch
    | Event
    | ForeignProcess
    | GpuUser
    | Stopped
    | Sample
    | Note
    | Postponed
    | RunEnded
    | RunClosed
    | Sealed
)
