"""A place for sessions, as a role: what the supervisor asks of it; and the simplest one, this host itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from acceptance import command, session
from acceptance.command import Completed
from acceptance.deadline import Deadline
from acceptance.judge.record import Note


class StationError(Exception):
    """The station that was asked for cannot be had; the message is one sentence with the cure."""


class Session(Protocol):
    """A session that was started; `command.Running` is one."""

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

    def wait(self) -> Completed:
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

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> Session:
        """Start the session that `context`, a file in the run directory, describes. It dies with the caller.

        Raises CommandError when it cannot be started.
        """
        ...


@dataclass(frozen=True, slots=True)
class Host:
    """Sessions run in place, with the caller's own rights. `remark` says why, where a container was meant to be."""

    remark: str | None = None

    @property
    def name(self) -> str:
        """As reports call it."""
        return "host"

    @property
    def provenance(self) -> Mapping[str, str]:
        """Why it was taken; everything else in the report is of this host."""
        return {"station_remark": self.remark} if self.remark else {}

    @property
    def notes(self) -> tuple[Note, ...]:
        """Why it was taken."""
        return (Note(self.remark),) if self.remark else ()

    def inside(self, run_dir: Path) -> Path:
        """Where it is."""
        return run_dir

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> command.Running:
        """Start the session as a child of this process."""
        argv, environment = session.argv(context), session.environment(run_id)
        return command.start(argv, deadline=deadline, log=log, env=environment, cwd=context.parent)
