"""One pinned process for each core: started together, read together, and all ended at the end.

The workers are forked, so sixteen of them start in milliseconds. The parent has no threads and has
not imported numpy, so a fork is safe. Each worker is pinned and limited to one thread before it
loads numpy itself. Messages are (kind, value) pairs over a pipe for each worker. Semaphores and
shared memory may be unavailable in a container, so none is used. Standard library only.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import TracebackType
from typing import Any

from acceptance.loads.cpu.cores import Core

Body = Callable[[Core, Connection], None]
MessageHandler = Callable[[Core, Any], None]

PR_SET_PDEATHSIG = 1  # linux/prctl.h
# Read by OpenBLAS, MKL, BLIS and OpenMP when they are loaded; a second thread would share the
# worker's one CPU and slow it down.
ONE_THREAD = {
    name: "1"
    for name in (
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "GOTO_NUM_THREADS",
    )
}
# time between the start message and the start: enough for it to reach hundreds of workers
END_S = 2.0  # for one whose pipe is closed
_LEAD_S = 0.05


class WorkerLost(Exception):
    """A worker died or stopped answering; the message is one sentence that names its core."""


@dataclass(frozen=True, slots=True)
class _Member:
    core: Core
    process: ForkProcess
    connection: Connection


class Team:
    """The workers of a load, from fork to end; leaving the `with` block kills those still alive."""

    def __init__(self, cores: tuple[Core, ...], body: Body) -> None:
        context = multiprocessing.get_context("fork")
        self._members: list[_Member] = []
        for core in cores:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_live, args=(core, theirs, body, os.getpid()), daemon=True
            )
            process.start()
            theirs.close()  # else the pipe would stay open after the worker's end
            self._members.append(_Member(core, process, ours))

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.process.join()

    def start(self, message: Callable[[float], Any]) -> None:
        """Send every worker `message(moment)`.

        `moment` is the time on the monotonic clock at which all of them begin.
        """
        value = message(time.monotonic() + _LEAD_S)
        for member in self._members:
            try:
                member.connection.send(("start", value))
            except OSError:
                raise _worker_lost(member) from None

    def collect(
        self,
        kind: str,
        within_s: float,
        other: MessageHandler,
        tick: Callable[[], None] = lambda: None,
    ) -> dict[Core, Any]:
        """Wait until every worker has sent one message of this kind.

        Messages of other kinds go to `other` at once. `tick` is called about once a second. Raises
        WorkerLost when a worker ends first, or has not answered in time; all that the workers had
        sent until then has reached `other`.
        """
        answers: dict[Core, Any] = {}
        end = time.monotonic() + within_s
        while len(answers) < len(self._members):
            silent = {
                member.connection: member for member in self._members if member.core not in answers
            }
            for connection in wait(
                list(silent), timeout=min(1.0, max(0.0, end - time.monotonic()))
            ):
                member = silent[connection]  # type: ignore[index]  # wait() returns what it was given
                try:
                    said, value = member.connection.recv()
                except (EOFError, OSError):
                    self._drain(other)
                    raise _worker_lost(member) from None
                if said == kind:
                    answers[member.core] = value
                else:
                    other(member.core, value)
            if time.monotonic() >= end and len(answers) < len(self._members):
                names = ", ".join(
                    member.core.component for member in self._members if member.core not in answers
                )
                raise WorkerLost(
                    f"the worker on {names} has not answered within {within_s:g} s and was killed"
                )
            tick()
        return answers

    def _drain(self, other: MessageHandler) -> None:
        for member in self._members:
            try:
                while member.connection.poll():
                    said, value = member.connection.recv()
                    if said == "miscompare":
                        other(member.core, value)
            except (EOFError, OSError):
                continue


def sleep_until(moment: float) -> None:
    """Return at this moment of the monotonic clock.

    The last millisecond is a busy wait, because sleeps end late.
    """
    while (left := moment - time.monotonic()) > 0:
        if left > 0.001:
            time.sleep(left - 0.001)


def _worker_lost(member: _Member) -> WorkerLost:
    member.process.join(END_S)
    code = member.process.exitcode
    name = member.core.component
    if code is None:
        return WorkerLost(f"the worker on {name} closed its pipe and did not end")
    if code < 0:
        hint = " (the kernel does so when memory runs out)" if -code == signal.SIGKILL else ""
        return WorkerLost(f"the worker on {name} was ended by signal {-code}{hint}")
    return WorkerLost(f"the worker on {name} ended early with exit code {code}")


def _live(core: Core, connection: Connection, body: Body, parent: int) -> None:
    """The whole life of a worker.

    A failure ends it with a traceback on standard error and exit code 1.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # the parent died before the line above took effect
        os._exit(1)
    # only the parent speaks the protocol: a stray print of a worker must not tear its lines
    os.dup2(2, 1)
    os.sched_setaffinity(0, {core.cpu})
    os.environ.update(ONE_THREAD)
    body(core, connection)
