"""The role of a station: what the supervisor asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from acceptance.core.record import Note
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline


class StationError(Exception):
    """The station that was asked for cannot be had; the message is one sentence with the cure."""


class SessionHandle(Protocol):
    """A session that was started; `command.RunningProgram` is one."""

    @property
    def container_id(self) -> str | None:
        """The engine's id of the container that it is in; None in place."""
        ...

    def poll(self) -> bool:
        """Whether it has ended."""
        ...

    def stop(self) -> None:
        """End it. Without effect when it has ended."""
        ...

    def wait(self) -> ProgramResult:
        """Wait until it ends or its deadline passes; what it printed and how it ended."""
        ...


class Station(Protocol):
    """A place for sessions."""

    @property
    def name(self) -> str:
        """Its name in reports: `host`, `docker`."""
        ...

    @property
    def provenance(self) -> Mapping[str, str]:
        """What reports say of it beside its name: engine, image."""
        ...

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the reader of the report must know of this choice."""
        ...

    def inside(self, run_dir: Path) -> Path:
        """The run directory as a session here sees it."""
        ...

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> SessionHandle:
        """Start the session that `context`, a file in the run directory, describes.

        It dies with the caller.

        Raises CommandError when it cannot be started.
        """
        ...
