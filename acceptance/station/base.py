"""The role of a station, as the supervisor uses it.

The host as a station: sessions run in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from acceptance.core.message import Message
from acceptance.core.record import Note
from acceptance.process import command
from acceptance.process.command import ProgramResult
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.wording import words


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


@dataclass(frozen=True, slots=True)
class HostStation:
    """Sessions run in place, with the caller's own rights.

    `remark` says why, where a container was intended. `site` is the folder of a site's own checks,
    which the session then runs in place of the shipped ones.
    """

    remark: Message | None = None
    site: Path | None = None

    @property
    def name(self) -> str:
        """The station's name in reports."""
        return "host"

    @property
    def provenance(self) -> Mapping[str, str]:
        """The reason for this station; everything else in the report is of this host."""
        return {"station_remark": words.message(self.remark)} if self.remark else {}

    @property
    def notes(self) -> tuple[Note, ...]:
        """The reason for this station, as a note."""
        return (Note(self.remark),) if self.remark else ()

    def inside(self, run_dir: Path) -> Path:
        """The run directory itself."""
        return run_dir

    def start(
        self, context: Path, run_id: str, deadline: Deadline, log: Path
    ) -> command.RunningProgram:
        """Start the session as a child of this process."""
        argv = session_context.argv(context, self.site)
        environment = session_context.environment(run_id, context)
        return command.start(argv, deadline=deadline, log=log, env=environment, cwd=context.parent)
