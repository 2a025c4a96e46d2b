"""The host as a station: sessions run in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acceptance.core.message import Message
from acceptance.core.record import Note
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.session import context as session_context
from acceptance.wording import words


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
