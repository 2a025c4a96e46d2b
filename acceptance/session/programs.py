"""Runs a check's programs, with the check's deadline, a log each, and a record in the journal."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Body, Note, ToolRan
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.session import timeouts

# Maximum number of queued lines: with their maximum length it bounds the memory for the output of a
# malfunctioning program.
WAITING = 256
POLL_S = 0.1  # the end of a program is noticed within this time


class _LineQueue:
    """A queue of lines from the reading threads to the one thread that may write the journal."""

    def __init__(self, on_line: Callable[[int, str], None]) -> None:
        self._on_line = on_line
        self._waiting: queue.Queue[tuple[int, str]] = queue.Queue(WAITING)
        self.missed = 0

    def receiver(self, index: int) -> Callable[[str], None]:
        """A callback for the thread that reads one program.

        It never waits, because its program would then wait too.
        """

        def put(line: str) -> None:
            try:
                self._waiting.put_nowait((index, line))
            except queue.Full:
                self.missed += 1

        return put

    def follow(self, running: Sequence[command.RunningProgram]) -> None:
        """Deliver lines as they arrive, until every program has ended or reached its deadline."""
        while not all(one.poll() or one.deadline.passed() for one in running):
            self._next(min(POLL_S, max(0.0, *(one.deadline.remaining() for one in running))))

    def drain(self) -> None:
        """Deliver the remaining lines when no more arrive."""
        while self._next(0.0):
            pass

    def _next(self, seconds: float) -> bool:
        """Deliver the next line; whether there was one within `seconds`."""
        try:
            index, line = (
                self._waiting.get(timeout=seconds) if seconds else self._waiting.get_nowait()
            )
        except queue.Empty:
            return False
        self._on_line(index, line)
        return True


class Programs:
    """All programs of one check. They share its deadline, which begins with the first.

    `repeat` distinguishes the logs of a repeat.
    """

    def __init__(
        self, planned: PlannedCheck, logs: Path, write: Callable[[Body], None], repeat: str = ""
    ) -> None:
        self._planned = planned
        self._logs = logs
        self._write = write
        self._repeat = repeat
        self._deadline: Deadline | None = None
        self._count = 0

    @property
    def folder(self) -> Path:
        """A folder that the programs can write to."""
        return self._logs

    @property
    def deadline(self) -> Deadline:
        """The time at which the check's programs must have ended."""
        if self._deadline is None:
            self._deadline = Deadline.after(timeouts.programs_s(self._planned))
        return self._deadline

    def find(self, program: str, package: str | None = None) -> str:
        """The program's path.

        Where it is not installed, the check is skipped, with the cure as its reason.
        """
        try:
            return command.find(program, package)
        except command.ProgramMissing as missing:
            pytest.skip(str(missing))

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: Deadline | None = None,
        env: Mapping[str, str] | None = None,
    ) -> command.ProgramResult:
        """Run one program to its end and journal how it ended.

        `deadline` applies where it is sooner than the check's. `env` is added to the session's own
        environment.
        """
        return self.run_together([argv], deadline=deadline, envs=[env or {}])[0]

    def run_together(
        self,
        argvs: Sequence[Sequence[str]],
        *,
        deadline: Deadline | None = None,
        envs: Sequence[Mapping[str, str]] | None = None,
        on_line: Callable[[int, str], None] | None = None,
    ) -> tuple[command.ProgramResult, ...]:
        """Run several programs side by side.

        `envs` are added to the session's own environment, one for each program. `on_line(index,
        line)` receives every line of standard output as soon as it is complete, in this thread;
        `index` is the program's position. Only this callback misses lines longer than 64 KiB, and
        lines that arrive faster than it handles them.
        """
        until = min(self.deadline, deadline or self.deadline, key=lambda one: one.at)
        listening = _LineQueue(on_line) if on_line is not None else None
        started: list[tuple[str, command.RunningProgram]] = []
        try:
            for index, (argv, env) in enumerate(zip(argvs, envs or [{}] * len(argvs), strict=True)):
                self._count += 1
                check = re.sub(r"[^A-Za-z0-9._-]", "-", self._planned.id)
                name = f"{check}{self._repeat}-{self._count}.log"
                taken = listening.receiver(index) if listening is not None else None
                running = command.start(
                    argv, deadline=until, log=self._logs / name, env=env, on_line=taken
                )
                started.append((name, running))
            if listening is None:
                return tuple(self._record(name, running.wait()) for name, running in started)
            listening.follow([running for _, running in started])
            ended = [(name, running.wait()) for name, running in started]
            listening.drain()
            if listening.missed:
                text = f"{listening.missed} lines came faster than they were listened to"
                self._write(
                    Note(
                        f"{self._planned.id}: {text}; their logs hold them as far as they are kept"
                    )
                )
            return tuple(self._record(name, done) for name, done in ended)
        finally:
            for _, running in started:
                running.stop()

    def _record(self, name: str, completed: command.ProgramResult) -> command.ProgramResult:
        self._write(
            ToolRan(
                self._planned.id,
                completed.argv,
                completed.returncode,
                completed.seconds,
                f"logs/{name}",
            )
        )
        if completed.log_error:
            self._write(
                Note(f"{self._planned.id}: a log was not kept whole: {completed.log_error}")
            )
        return completed
