"""Starts programs: the only module that does.

Every load and every tool is a program with a deadline. It runs under `reaper.py`, in a process
group of its own. All its descendants end when it ends, when its deadline passes, or when the
harness dies, even by SIGKILL. Its output is read at once and kept up to a cap.

The output of a program: kept up to a cap, counted beyond it, and passed on line by line.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from acceptance.core import plain_text, regular_file
from acceptance.core.message import Message, Text, english
from acceptance.process import reaper
from acceptance.process.deadline import Deadline
from acceptance.wording.errors import WordedError

CAP_BYTES = 16 * 1024 * 1024
LINE_BYTES = 65536
CHUNK = 65536


@dataclass(slots=True)
class LineSplitter:
    """Splits a stream into lines and passes each complete line to `on_line`.

    The last line needs no line end. A line longer than LINE_BYTES is left out, so that memory does
    not grow with the output.
    """

    on_line: Callable[[str], None]
    _begun: bytearray = field(default_factory=bytearray)
    _too_long: bool = False

    def put(self, chunk: bytes) -> None:
        """Add the next piece."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._begin(end)
            self._hand()
        self._begin(rest)

    def end(self) -> None:
        """End the stream: a rest without a line end is a line too."""
        if self._begun or self._too_long:
            self._hand()

    def _begin(self, piece: bytes) -> None:
        if self._too_long or len(self._begun) + len(piece) > LINE_BYTES:
            self._begun.clear()
            self._too_long = True
        else:
            self._begun += piece

    def _hand(self) -> None:
        if not self._too_long:
            self.on_line(self._begun.decode("utf-8", errors="replace").removesuffix("\r"))
        self._begun.clear()
        self._too_long = False


@dataclass(slots=True)
class Spool:
    """One output stream, kept up to the cap and counted beyond it.

    So a flood of output neither blocks the program nor fills the disk. `lines`, if given, gets the
    whole stream, also beyond the cap.
    """

    stream: IO[bytes]
    log: Path | None
    cap: int
    lines: LineSplitter | None = None
    kept: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    failure: OSError | None = None
    _taken: int = 0

    def drain(self) -> None:
        """Read the stream to its end; the body of a thread."""
        try:
            log = regular_file.create(self.log) if self.log else None
        except OSError as error:
            self.failure, log = error, None
        with log or contextlib.nullcontext():
            while chunk := os.read(self.stream.fileno(), CHUNK):
                keep = chunk[: self.cap - len(self.kept)]
                self.kept += keep
                self.dropped += len(chunk) - len(keep)
                if log and keep and not self.failure:
                    try:
                        if log.write(keep) != len(keep):
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    # a full disk: the result in memory is still judged
                    except OSError as error:
                        self.failure = error
                if self.lines is not None:
                    self.lines.put(chunk)
        if self.lines is not None:
            self.lines.end()
        self.stream.close()

    def new_lines(self) -> list[str]:
        """The complete lines of the kept part that came since the last call."""
        begin, self._taken = self._taken, self.kept.rfind(b"\n") + 1
        return self.kept[begin : self._taken].decode("utf-8", "replace").split("\n")[:-1]

    def text(self) -> str:
        """The kept part of the stream."""
        return bytes(self.kept).decode("utf-8", errors="replace")


GRACE_S = 3.0


class CommandError(WordedError):
    """A program could not be started."""


class ProgramMissing(CommandError):
    """The program is not on PATH or is not executable; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """Result of a program. `returncode` is negative for a signal, as in the standard library.

    `causes` are what was seen of its end from outside.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    truncated: bool = False  # output beyond the cap was dropped, so the text here is not complete
    log_error: str | None = None  # why the log file does not hold the same text
    causes: tuple[Message, ...] = ()

    @property
    def text(self) -> str:
        """All that it printed: standard output, then standard error."""
        return f"{self.stdout}\n{self.stderr}"

    def describe(self) -> Message:
        """How it ended, in a few words."""
        if self.timed_out:
            return Message(
                english(
                    "timed_out", "did not end within its time and was stopped after {seconds} s"
                ),
                {"seconds": f"{self.seconds:.0f}"},
            )
        seconds = f"{self.seconds:.1f}"
        if self.returncode < 0:
            return Message(
                english("ended_by_signal", "was ended by signal {signal} after {seconds} s"),
                {"signal": -self.returncode, "seconds": seconds},
            )
        return Message(
            english("ended_with_code", "ended with exit code {code} after {seconds} s"),
            {"code": self.returncode, "seconds": seconds},
        )

    def last_lines(self, count: int = 5) -> str:
        """The last lines it printed, for a message; standard error after standard output."""
        return "\n".join([*_lines(self.stdout), *_lines(self.stderr)][-count:])

    def last_told(self, count: int) -> Text:
        """The last lines, the causes of its end among them: after standard output."""
        lines: list[Text] = [*_lines(self.stdout), *self.causes, *_lines(self.stderr)]
        return functools.reduce(_below, lines[-count:]) if lines else ""


def _lines(text: str) -> list[str]:
    """The lines that are not empty, each cut to what a message can hold."""
    lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
    return [plain_text.shortened(line, 200) for line in _without_frames(lines)]


def _without_frames(lines: Sequence[str]) -> list[str]:
    """The lines without the frames of Python tracebacks: what was raised stays."""
    found, inside = [], False
    for line in lines:
        inside = line.startswith("Traceback (most recent call last):") or (
            inside and line.startswith((" ", "\t"))
        )
        if not inside:
            found.append(line)
    return found


def _below(told: Text, line: Text) -> Text:
    return (
        f"{told}\n{line}"
        if isinstance(told, str) and isinstance(line, str)
        else Message("line_below", {"line": told, "next": line})
    )


def find(program: str, package: str | None = None) -> str:
    """The full path of a program on PATH.

    Raises ProgramMissing with the package to install, or with the file that is not executable.
    Debian keeps some tools out of a user's PATH, so the system directories are searched too.
    """
    path = os.pathsep.join(
        [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    )
    if found := shutil.which(program, path=path):
        return found
    if there := shutil.which(program, os.F_OK, path):
        raise ProgramMissing(
            english(
                "program_not_executable",
                "{path} is there but may not be run: make it executable with `sudo chmod +x "
                "{path}`",
            ),
            path=shlex.quote(there),
        )
    if package:
        raise ProgramMissing(
            english(
                "program_missing",
                "{program} is not installed: install it with `sudo apt install {package}` (in a "
                "checkout `sudo make tools` installs all of them)",
            ),
            program=program,
            package=package,
        )
    raise ProgramMissing("program_not_on_path", program=program)


class _Exit:
    """The time at which a process ended.

    Of several processes side by side, each is waited for in turn, perhaps long after its end.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self._ended_s = pid, 0.0
        self._seen = threading.Event()
        threading.Thread(target=self._see, daemon=True).start()

    def _see(self) -> None:
        with contextlib.suppress(ChildProcessError):  # it was collected at this moment
            os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._ended_s = time.monotonic()
        self._seen.set()

    def within(self, seconds: float) -> bool:
        """Whether it ends within that time.

        It is known at once: `Popen.wait` looks twenty times a second.
        """
        return self._seen.wait(min(seconds, threading.TIMEOUT_MAX))

    def moment(self) -> float:
        """Time of the end on the monotonic clock; call it after the process was collected."""
        self._seen.wait(5.0)
        return self._ended_s or time.monotonic()


@dataclass(slots=True)
class RunningProgram:
    """A program that was started and has not been waited for."""

    argv: tuple[str, ...]
    deadline: Deadline
    process: subprocess.Popen[bytes]
    _out: Spool
    _err: Spool
    _threads: list[threading.Thread]
    _began: float
    _exit: _Exit
    expired: bool = False  # whether it was told to end because its time is over

    @property
    def container_id(self) -> None:
        """None: a child of this process is not in a container."""

    def poll(self) -> bool:
        """Whether the program has ended."""
        return self.process.poll() is not None

    def new_lines(self) -> list[str]:
        """The complete lines of both outputs that came since the last call."""
        return [*self._out.new_lines(), *self._err.new_lines()]

    def ends_within(self, seconds: float) -> bool:
        """Whether the program ends within that time; it is known at once."""
        return self._exit.within(seconds)

    def expire(self) -> None:
        """Begin to end the program because its time is over, and return at once.

        `wait` does the rest, and reports that it did not end within its time.
        """
        if not self.expired and self.process.poll() is None:
            self.expired = True
            self.process.terminate()

    def stop(self) -> None:
        """End the program and its family: SIGTERM, then SIGKILL. No effect if it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
            if self._exit.within(GRACE_S + 5.0):
                self.process.wait()
            else:  # the reaper itself hangs: none of its family may survive
                for pid in [*reaper.descendants(self.process.pid), self.process.pid]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def wait(self) -> ProgramResult:
        """Wait until the program ends or its deadline passes, then return its output."""
        timed_out = self.expired
        try:
            # The kernel knows of an end before the thread that waits for it has run.
            if timed_out or (not self._exit.within(self.deadline.remaining()) and not self.poll()):
                timed_out = True
                self.stop()
        except BaseException:  # Ctrl-C or the test engine's time limit: leave nothing running
            self.stop()
            raise
        returncode = self.process.wait()
        for thread in self._threads:
            thread.join(5.0)
        # A descendant in uninterruptible sleep may keep a pipe open; then the text may be
        # incomplete.
        whole = not any(thread.is_alive() for thread in self._threads) and not (
            self._out.dropped or self._err.dropped
        )
        unkept = [
            f"{spool.log}: {spool.failure.strerror}"
            for spool in (self._out, self._err)
            if spool.failure
        ]
        return ProgramResult(
            argv=self.argv,
            returncode=returncode,
            stdout=self._out.text(),
            stderr=self._err.text(),
            seconds=self._exit.moment() - self._began,
            timed_out=timed_out,
            truncated=not whole,
            log_error="; ".join(unkept) or None,
        )


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of programs: the user's, in the C.UTF-8 locale.

    Variables that steer pytest, coverage, Python or git are removed.
    """
    stray = ("PYTEST_", "PYTHON", "COVERAGE_", "COV_CORE_", "GIT_", "LANGUAGE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(stray)}
    environment.update({"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"})
    environment.update(extra or {})
    return environment


def under_reaper(argv: Sequence[str]) -> list[str]:
    """The command line that starts a program under the reaper.

    The program ends together with all its descendants, and together with this process.
    """
    return [
        sys.executable,
        "-I",
        "-S",
        reaper.__file__,
        str(os.getpid()),
        str(GRACE_S),
        "--",
        *argv,
    ]


def start(
    argv: Sequence[str],
    *,
    deadline: Deadline,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    cap_bytes: int = CAP_BYTES,
    on_line: Callable[[str], None] | None = None,
    stdin: Path | None = None,
) -> RunningProgram:
    """Start a program.

    `log` is the file for standard output; standard error goes to the same name with `.err` added.

    `stdin` is the file for standard input; without it, standard input is empty.

    `on_line` is called with each complete line of standard output, without its line end. The
    reading thread calls it: it must return at once and raise nothing.

    Raises CommandError when the program cannot be started. A missing or not executable program ends
    with exit code 127 and a message on standard error, as in a shell (call `find` first for a
    better message).

    Call it from the main thread only: the kernel ties the parent-death signal to the thread that
    forked, and the end of that thread would end the program.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "command.start belongs to the main thread: the parent-death signal follows the thread"
        )
    if deadline.passed():
        raise CommandError(
            english("out_of_time", "{program} was not started: its time was over before it began"),
            program=argv[0],
        )
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        # Inherited from a careless parent: the kernel would discard exit codes, and Python would
        # report 0 for each.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    began = time.monotonic()
    try:
        with (
            regular_file.open_read(stdin, regular_file.SMALL_RECORD)
            if stdin
            else Path(os.devnull).open("rb") as given
        ):
            process = subprocess.Popen(
                under_reaper(argv),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=clean_environment(env),
                cwd=cwd,
                start_new_session=True,
            )
    except OSError as error:
        why = f"{error.strerror} ({error.filename})"
        raise CommandError(
            english("program_not_started", "{program} could not be started: {why}"),
            program=argv[0],
            why=why,
        ) from error
    except ValueError as error:
        raise CommandError("program_not_started", program=repr(argv[0]), why=str(error)) from error
    assert process.stdout is not None
    assert process.stderr is not None
    out = Spool(
        process.stdout, log, cap_bytes, LineSplitter(on_line) if on_line is not None else None
    )
    err = Spool(process.stderr, log.with_name(log.name + ".err") if log else None, cap_bytes)
    threads = [threading.Thread(target=spool.drain, daemon=True) for spool in (out, err)]
    for thread in threads:
        thread.start()
    return RunningProgram(
        tuple(argv), deadline, process, out, err, threads, began, _Exit(process.pid)
    )


def run(
    argv: Sequence[str],
    *,
    deadline: Deadline,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    cap_bytes: int = CAP_BYTES,
    stdin: Path | None = None,
) -> ProgramResult:
    """Start a program and wait for it."""
    return start(
        argv, deadline=deadline, log=log, env=env, cwd=cwd, cap_bytes=cap_bytes, stdin=stdin
    ).wait()
