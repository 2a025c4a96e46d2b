"""Running a check's programs: with the check's deadline, a log each, and a record in the journal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from acceptance import command
from acceptance.deadline import Deadline
from acceptance.judge.plan import PlannedCheck
from acceptance.judge.record import Body, Note, ToolRan


def allowed_s(planned: PlannedCheck) -> float:
    """Seconds that a check's programs have, all together: a quarter more than expected, its slack, and half a minute for a slow machine."""
    return planned.seconds * 1.25 + planned.slack_s + 30.0


class Programs:
    """All programs of one check. They share its deadline, which begins with the first."""

    def __init__(self, planned: PlannedCheck, logs: Path, write: Callable[[Body], None]) -> None:
        self._planned = planned
        self._logs = logs
        self._write = write
        self._deadline: Deadline | None = None
        self._count = 0

    @property
    def folder(self) -> Path:
        """A folder that the programs can write."""
        return self._logs

    @property
    def deadline(self) -> Deadline:
        """When the check's programs must have ended."""
        if self._deadline is None:
            self._deadline = Deadline.after(allowed_s(self._planned))
        return self._deadline

    def find(self, program: str, package: str | None = None) -> str:
        """The program's path. Where it is not installed the check is skipped, with the cure as its reason: nothing was measured."""
        try:
            return command.find(program, package)
        except command.ProgramMissing as missing:
            pytest.skip(str(missing))

    def run(
        self, argv: Sequence[str], *, deadline: Deadline | None = None, env: Mapping[str, str] | None = None
    ) -> command.Completed:
        """Run one program to its end, at the latest to `deadline` where that is sooner than the check's, and journal how it ended.

        `env` is set beside the session's own environment.
        """
        return self.run_together([argv], deadline=deadline, envs=[env or {}])[0]

    def run_together(
        self,
        argvs: Sequence[Sequence[str]],
        *,
        deadline: Deadline | None = None,
        envs: Sequence[Mapping[str, str]] | None = None,
    ) -> tuple[command.Completed, ...]:
        """Run several programs side by side. `envs` are set beside the session's own environment, one for each of them."""
        until = min(self.deadline, deadline or self.deadline, key=lambda one: one.at)
        started = []
        try:
            for argv, env in zip(argvs, envs or [{}] * len(argvs), strict=True):
                self._count += 1
                name = f"{re.sub(r'[^A-Za-z0-9._-]', '-', self._planned.id)}-{self._count}.log"
                started.append((name, command.start(argv, deadline=until, log=self._logs / name, env=env)))
            return tuple(self._record(name, running.wait()) for name, running in started)
        finally:
            for _, running in started:
                running.stop()

    def _record(self, name: str, completed: command.Completed) -> command.Completed:
        self._write(ToolRan(self._planned.id, completed.argv, completed.returncode, completed.seconds, f"logs/{name}"))
        if completed.log_error:
            self._write(Note(f"{self._planned.id}: a log was not kept whole: {completed.log_error}"))
        return completed
