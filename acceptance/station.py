"""Where a session runs: in place, on this host. The container station joins it here, behind the same two verbs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from acceptance import command, session
from acceptance.deadline import Deadline


class StationError(Exception):
    """The station that was asked for cannot be had; the message is one sentence with the cure."""


class Station(Protocol):
    """A place for sessions."""

    @property
    def name(self) -> str:
        """Its name in reports: `host`, `docker`."""
        ...

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> command.Running:
        """Start the session that `context` describes. It dies with the caller."""
        ...


class Host:
    """Sessions run in place, with the caller's own rights."""

    name = "host"

    def start(self, context: Path, run_id: str, deadline: Deadline, log: Path) -> command.Running:
        """Start the session as a child of this process."""
        argv, environment = session.argv(context), session.environment(run_id)
        return command.start(argv, deadline=deadline, log=log, env=environment, cwd=context.parent)


def choose(name: str) -> tuple[Station, str | None]:
    """The station of that name, and a line the user must see about the choice.

    Raises StationError for one that cannot be had.
    """
    if name == "docker":
        raise StationError(
            "this version of rigproof has no container station yet: run with --station host (STATION=host)"
        )
    if name == "auto":
        return (
            Host(),
            "STATION: host. The loads run in place, with your rights and no isolation: there is no container station yet.",
        )
    if name != Host.name:
        raise StationError(f"there is no station {name!r}: choose auto or host")
    return Host(), None
