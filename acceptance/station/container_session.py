"""A session in a container: followed, ended, and its container removed in every case.

It uses only a few methods of the client's container object (`reload`, `status`, `attrs`, `logs`,
`stop`, `remove`), so that a fake can replace it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from acceptance.core import regular_file
from acceptance.core.limit import GIB
from acceptance.core.message import Message, Text
from acceptance.process.command import CAP_BYTES, ProgramResult
from acceptance.process.deadline import Deadline

# the reaper inside gives its processes 3 s to end, and as long again to those that do not
STOP_S = 10
POLL_S = 0.2  # more frequent polling takes processor time from the load
LOST_S = 10.0
ENDED = ("exited", "dead", "removing", "stopped")
# exit code of a shell after SIGKILL, with which the kernel ends a process when memory runs out
KILLED = 137
NO_ANSWER = 255  # exit code of ssh after a broken connection


def hang_up(stdin: Any, trouble: tuple[type[Exception], ...]) -> None:
    """Close a session's standard input, which ends the session.

    The socket is shut down first: closing alone leaves it open while the client has a file on it.
    """
    line = getattr(stdin, "_sock", stdin)
    with contextlib.suppress(*trouble):
        line.shutdown(socket.SHUT_RDWR)
    _disconnect(stdin, trouble)
    for one in (stdin, line):
        with contextlib.suppress(*trouble):
            one.close()


def _disconnect(stream: Any, trouble: tuple[type[Exception], ...]) -> None:
    """Close the connection of one of the client's streams.

    The client would leave it to the garbage collector.
    """
    response = getattr(stream, "_response", None)
    if response is not None:
        with contextlib.suppress(*trouble):
            response.close()


@dataclass(slots=True)
class ContainerSession:
    """A session in a container.

    `stdin` is its standard input: the session ends when that is closed, or when this process dies.
    `trouble` are the exceptions that the engine's client raises; `reason` says what one means.
    `bury` ends the session's processes without the engine: an engine that dies leaves its
    containers running, and their standard input open.
    """

    container: Any
    stdin: Any
    argv: tuple[str, ...]
    deadline: Deadline
    log: Path
    memory_bytes: int
    trouble: tuple[type[Exception], ...]
    reason: Callable[[BaseException], Text] = str
    bury: Callable[[], object] = tuple
    cap_bytes: int = CAP_BYTES
    _began: float = field(default_factory=time.monotonic)
    _asked: float = float("-inf")
    _silent_since: float | None = None
    _over: bool = False
    _lost: Message | None = None
    _output: bytearray = field(default_factory=bytearray)
    _dropped: bool = False
    _log_error: str | None = None
    _reader: threading.Thread | None = None

    @property
    def container_id(self) -> str:
        """The engine's id of the container."""
        return str(self.container.id)

    def read_on(self) -> None:
        """Begin to record the session's output."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.ExitStack() as stack:
            file: IO[bytes] | None = None
            try:
                file = stack.enter_context(regular_file.create(self.log))
            except OSError as error:
                self._log_error = f"{self.log}: {error.strerror}"
            with contextlib.suppress(*self.trouble):  # an engine that goes away: `poll` reports it
                chunks = self.container.logs(stream=True, follow=True)
                stack.callback(_disconnect, chunks, self.trouble)
                for chunk in chunks:
                    keep = chunk[: self.cap_bytes - len(self._output)]
                    self._dropped = self._dropped or len(keep) < len(chunk)
                    self._output += keep
                    if file and keep and not self._log_error:
                        try:
                            file.write(keep)
                        # a full disk: the output in memory is still judged
                        except OSError as error:
                            self._log_error = f"{self.log}: {error.strerror}"

    def poll(self) -> bool:
        """Whether the session has ended.

        It also counts as ended when the engine does not answer for LOST_S seconds, or no longer
        knows the container.
        """
        now = time.monotonic()
        if self._over or now < self._asked + POLL_S:
            return self._over
        try:
            self.container.reload()
        except self.trouble as error:
            self._silent_since = self._silent_since or now
            gone = getattr(error, "status_code", None) == 404
            if gone or time.monotonic() >= self._silent_since + LOST_S:
                code = "container_removed" if gone else "engine_gone"
                self._lost, self._over = Message(code, {"why": self.reason(error)}), True
        else:
            self._silent_since = None
            self._over = self.container.status in ENDED
        self._asked = time.monotonic()
        return self._over

    def stop(self) -> None:
        """Close the session's standard input, which ends it; then stop the container.

        No effect when it has ended.
        """
        self._hang_up()
        with contextlib.suppress(*self.trouble):
            self.container.stop(timeout=STOP_S)
        # do not wait longer for an engine that does not obey
        self.deadline = self.deadline.sooner(STOP_S)
        self._asked = float("-inf")

    def _hang_up(self) -> None:
        stdin, self.stdin = self.stdin, None
        if stdin is not None:
            hang_up(stdin, self.trouble)

    def wait(self) -> ProgramResult:
        """Wait for the session's end, collect its result, and always remove the container."""
        timed_out = False
        try:
            while not self.poll():
                if self.deadline.passed():
                    timed_out = True
                    self.stop()
                    break
                time.sleep(POLL_S)
            if self._lost:
                self.bury()
            return self._completed(timed_out=timed_out)
        finally:
            self._hang_up()
            with contextlib.suppress(*self.trouble):
                self.container.remove(force=True, v=True)

    def _completed(self, *, timed_out: bool) -> ProgramResult:
        state: Mapping[str, Any] = {}
        with contextlib.suppress(*self.trouble):
            self.container.reload()
            state = self.container.attrs["State"]
        if self._reader is not None:
            self._reader.join(5.0)
        starved = bool(state.get("OOMKilled"))
        causes = [self._lost] if self._lost else []
        if starved:
            given = f"{self.memory_bytes / GIB:.1f} GiB"
            causes.append(Message("container_memory_used", {"size": given}))
        code = NO_ANSWER if self._lost or "ExitCode" not in state else int(state["ExitCode"])
        return ProgramResult(
            argv=self.argv,
            # A session that continued after the kernel killed its load is not whole, whatever its
            # own exit code.
            returncode=KILLED if starved and code in (0, 1, 2) else code,
            stdout=bytes(self._output).decode("utf-8", errors="replace"),
            stderr=str(state.get("Error") or ""),
            seconds=time.monotonic() - self._began,
            timed_out=timed_out,
            truncated=self._dropped or (self._reader is not None and self._reader.is_alive()),
            log_error=self._log_error,
            causes=tuple(causes),
        )
