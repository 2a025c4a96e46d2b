"""Runs a check's programs, with the check's deadline, a log each, and a record in the journal."""

from __future__ import annotations

import queue
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from acceptance.core.evidence import AnyBody, PartBegan, ToolRan
from acceptance.core.message import Message, english, not_permitted
from acceptance.core.plan import PlannedCheck
from acceptance.core.record import Note, Stopped
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.session import context
from acceptance.session.check import CheckSkipped
from acceptance.session.loads import Part
from acceptance.wording.errors import said

# Maximum number of queued lines: with their maximum length it bounds the memory for the output of a
# malfunctioning program.
WAITING = 256
# Signals that others send; a program that fails ends itself by one of the others.
SENT = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
POLL_S = 0.1  # the end of a program is noticed within this time


class _LineQueue:
    """A queue of lines from the reading threads to the one thread that may write the journal."""

    def __init__(self, on_line: Callable[[int, str], None]) -> None:
        self._on_line = on_line
        self._waiting: queue.Queue[tuple[int, str]] = queue.Queue(WAITING)
        self.missed = 0
        self.heard: set[int] = set()

    def receiver(self, index: int) -> Callable[[str], None]:
        """A callback for the thread that reads one program.

        It never waits, because its program would then wait too.
        """

        def put(line: str) -> None:
            self.heard.add(index)
            try:
                self._waiting.put_nowait((index, line))
            except queue.Full:
                self.missed += 1

        return put

    def drain(self) -> None:
        """Deliver the remaining lines when no more arrive."""
        while self.deliver(0.0):
            pass

    def deliver(self, seconds: float) -> bool:
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
        self, planned: PlannedCheck, logs: Path, write: Callable[[AnyBody], None], repeat: str = ""
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
            self._deadline = Deadline.after(context.programs_s(self._planned))
        return self._deadline

    def find(self, program: str, package: str | None = None) -> str:
        """The program's path.

        Where it is not installed, the check is skipped, with the cure as its reason.
        """
        try:
            return command.find(program, package)
        except command.ProgramMissing as missing:
            raise CheckSkipped(not_permitted(said(missing))) from missing

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
        seconds = None if deadline is None else deadline.remaining()
        return self.run_stage([Part(None, tuple(argv), env or {}, seconds=seconds)])[0]

    def run_stage(
        self,
        parts: Sequence[Part],
        *,
        on_line: Callable[[int, str], None] | None = None,
        whole: Callable[[command.ProgramResult], bool] | None = None,
    ) -> tuple[command.ProgramResult, ...]:
        """Run the parts of a stage, each in its time, and journal when each began and how it ended.

        A part that ends early or will not end delays no other; the check's deadline ends them all.
        `on_line(index, line)` receives every line of standard output as soon as it is complete, in
        this thread; `index` is the part's position. Only this callback misses lines longer than 64
        KiB, and lines that arrive faster than it handles them. Without it no part is heard, and one
        that waits for another begins at its end.

        With `whole`, a part that waited for another is ended with it, unless `whole` says of that
        one's result that it ran whole. Its own result is then that its time was over.
        """
        lines = _LineQueue(on_line) if on_line is not None else None
        waiting = sorted(range(len(parts)), key=lambda index: parts[index].begin_s)
        started: dict[int, tuple[str, command.RunningProgram]] = {}
        until, zero = self.deadline, time.monotonic()

        def may_begin(index: int) -> bool:
            other = parts[index].after
            heard = lines is not None and other in lines.heard
            return other is None or heard or (other in started and started[other][1].poll())

        ran_whole: dict[int, bool] = {}  # of parts that have ended

        def ends_now(index: int) -> bool:
            other = parts[index].after
            if whole is None or other not in started or not started[other][1].poll():
                return False
            if other not in ran_whole:
                ran_whole[other] = whole(started[other][1].wait())
            return not ran_whole[other]

        try:
            while True:
                now, over = time.monotonic(), until.passed()
                timely = [one for one in waiting if over or now >= zero + parts[one].begin_s]
                due = [one for one in timely if over or may_begin(one)]
                waiting = [one for one in waiting if one not in due]
                for index in due:
                    part, taken = parts[index], lines.receiver(index) if lines is not None else None
                    ends = Deadline(min(until.at, zero + part.end_s))
                    started[index] = self._start(part, ends, taken)
                self._journal_begin([(parts[index], started[index][0]) for index in due])
                running: list[command.RunningProgram] = []
                for index, (_, one) in started.items():
                    late = one.deadline.passed()
                    if late or ends_now(index):
                        self._expire(one, parts[index])
                    if not late and not one.poll():
                        running.append(one)
                if not running and not waiting:
                    break
                moments = [until.at, *(one.deadline.at for one in running)]
                moments += [
                    now + POLL_S if one in timely else zero + parts[one].begin_s for one in waiting
                ]
                moments += [now + POLL_S] if whole is not None else []
                left = max(0.0, min(moments) - time.monotonic())
                if lines is not None:
                    lines.deliver(min(POLL_S, left))
                elif running:
                    running[0].ends_within(left)
                else:
                    time.sleep(left)
            ended = [(*started[at], part) for at, part in enumerate(parts)]
            done = [(name, one.wait(), part) for name, one, part in ended]
            if lines is not None:
                lines.drain()
                self._note_missed(lines.missed)
            return tuple(self._record(name, result, part) for name, result, part in done)
        finally:
            try:
                for index, (_, one) in started.items():
                    self._expire(one, parts[index])  # all at once: each may take its whole grace
            finally:
                for _, one in started.values():
                    one.stop()

    def _start(
        self, part: Part, ends: Deadline, on_line: Callable[[str], None] | None
    ) -> tuple[str, command.RunningProgram]:
        """Start a part's program; returns the name of its log too."""
        self._count += 1
        check = re.sub(r"[^A-Za-z0-9._-]", "-", self._planned.id)
        name = f"{check}{self._repeat}-{self._count}.log"
        running = command.start(
            part.argv, deadline=ends, log=self._logs / name, env=part.env, on_line=on_line
        )
        return name, running

    def _expire(self, one: command.RunningProgram, part: Part) -> None:
        """Begin to end a program that runs; journalled before, because of what the driver says."""
        if not one.expired and not one.poll():
            self._write(Stopped(self._planned.id, component=part.component))
            one.expire()

    def _journal_begin(self, began: Sequence[tuple[Part, str]]) -> None:
        """Journal the parts that began, after the start of them all: it waits for the disk."""
        for part, name in began:
            if part.component is not None:
                self._write(PartBegan(self._planned.id, part.component, f"logs/{name}"))

    def _note_missed(self, count: int) -> None:
        if count:
            self._write(
                Note(
                    Message(
                        english(
                            "lines_missed",
                            "{check}: {n} lines came faster than they were listened to; their "
                            "logs hold them as far as they are kept",
                        ),
                        {"check": self._planned.id, "n": count},
                    )
                )
            )

    def _record(
        self, name: str, completed: command.ProgramResult, part: Part
    ) -> command.ProgramResult:
        if -completed.returncode in SENT and not completed.timed_out:
            self._write(Stopped(self._planned.id, ended=True, component=part.component))
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
            values = {"check": self._planned.id, "why": completed.log_error}
            self._write(
                Note(
                    Message(
                        english("log_not_whole", "{check}: a log was not kept whole: {why}"), values
                    )
                )
            )
        return completed
