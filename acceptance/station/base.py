"""The role of a station, as the supervisor uses it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from acceptance.core.record import Note
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline


class SessionHandle(Protocol):
    """A running session; `command.RunningProgram` is one."""

    @property
    def container_id(self) -> str | None:
        """The engine's id of the session's container; None in place."""
        ...

    def poll(self) -> bool:
        """Whether the session has ended."""
        ...

    def stop(self) -> None:
        """End the session. No effect when it has ended."""
        ...

    def wait(self) -> ProgramResult:
        """Wait until the session ends or its deadline passes; returns its output and exit."""
        ...


class Station(Protocol):
    """A place for sessions."""

    @property
    def name(self) -> str:
        """The station's name in reports: `host`, `docker`."""
        ...

    @property
    def provenance(self) -> Mapping[str, str]:
        """Further facts for reports: engine, image."""
        ...

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about this choice for the reader of the report."""
        ...

    def inside(self, run_dir: Path) -> Path:
        """The run directory's path inside a session."""
        ...

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> SessionHandle:
        """Start the session that `context`, a file in the run directory, describes.

        It dies with the caller.

        Raises CommandError when it cannot be started.
        """
        ...
