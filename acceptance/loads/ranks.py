"""The ranks of a load: processes that are all needed, started, heard and ended by one program.

The program alone speaks the protocol; a rank sends it (kind, value) pairs over a pipe of its own.
All or none: a rank that dies or stays silent ends the others, and the load fails. Loads that do not
need each other are programs of their own, parts of a stage.

The ranks are forked, so sixteen of them start in milliseconds. The parent has no threads and has
imported neither numpy nor torch, so a fork is safe, and what `Rank.prepare` sets is there before a
rank imports them. Semaphores and shared memory may be unavailable in a container, so none is used.
Standard library only.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from acceptance.core.parts import Component, Gpu, listed
from acceptance.loads.program import LoadError

PR_SET_PDEATHSIG = 1  # linux/prctl.h
REPORTED = 8  # wrong results that a rank reports; all are counted
END_S = 2.0  # for one whose pipe is closed, and for all of them after SIGKILL
# time between the start message and the start: enough for it to reach hundreds of ranks
_LEAD_S = 0.05


class Rank(Protocol):
    """One process of a load: what it loads, and what it sets before it begins."""

    @property
    def component(self) -> Component:
        """The component that it loads, for messages."""

    def prepare(self) -> None:
        """Set affinity and environment, in its own process and before anything is imported."""


@dataclass(frozen=True, slots=True)
class GpuRank:
    """The process of one GPU, in the order in which CUDA shows them."""

    number: int

    @property
    def component(self) -> Gpu:
        """Its GPU."""
        return Gpu(self.number)

    def prepare(self) -> None:
        """Nothing is set."""


R = TypeVar("R", bound=Rank)
Body = Callable[[R, Connection], None]
MessageHandler = Callable[[R, Any], None]


class RankLost(LoadError):
    """A rank died, stopped answering or does not end; the message names its component."""


class RankSilent(RankLost):
    """A rank did not answer in time."""


@dataclass(frozen=True, slots=True)
class _Member(Generic[R]):
    rank: R
    process: ForkProcess
    connection: Connection


class Ranks(Generic[R]):
    """The ranks of a load, from fork to end; leaving the `with` block kills those still alive.

    The block raises RankLost for one that outlives SIGKILL by END_S: it hangs in the kernel, as in
    the driver of a lost GPU, and is not waited for.
    """

    def __init__(self, ranks: tuple[R, ...], body: Body[R]) -> None:
        context = multiprocessing.get_context("fork")
        self._members: list[_Member[R]] = []
        for rank in ranks:
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_live, args=(rank, theirs, body, os.getpid()), daemon=True
            )
            process.start()
            theirs.close()  # else the pipe would stay open after the rank's end
            self._members.append(_Member(rank, process, ours))

    def __enter__(self) -> Ranks[R]:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for member in self._members:
            member.process.kill()
        end = time.monotonic() + END_S
        for member in self._members:
            member.process.join(max(0.0, end - time.monotonic()))
        hung = [one.rank.component for one in self._members if one.process.exitcode is None]
        if hung and error is None:
            raise RankLost(f"the worker on {listed(hung)} was killed and does not end")

    def start(self, message: Callable[[float], Any]) -> None:
        """Send every rank `message(moment)`.

        `moment` is the time on the monotonic clock at which all of them begin.
        """
        value = message(time.monotonic() + _LEAD_S)
        for member in self._members:
            try:
                member.connection.send(("start", value))
            except OSError:
                raise self._lost(member) from None

    def collect(
        self,
        kind: str,
        within_s: float,
        other: MessageHandler[R],
        tick: Callable[[], None] = lambda: None,
    ) -> dict[R, Any]:
        """Wait until every rank has sent one message of this kind.

        Messages of other kinds go to `other` at once. `tick` is called about once a second. Raises
        RankLost when a rank ends first, RankSilent when one has not answered in time; all that the
        ranks had sent until then has reached `other`.
        """
        answers: dict[R, Any] = {}
        end = time.monotonic() + within_s
        while len(answers) < len(self._members):
            silent = {
                member.connection: member for member in self._members if member.rank not in answers
            }
            for connection in wait(
                list(silent), timeout=min(1.0, max(0.0, end - time.monotonic()))
            ):
                member = silent[connection]  # type: ignore[index]  # wait() returns what it was given
                try:
                    said, value = member.connection.recv()
                except (EOFError, OSError):
                    self._drain(other)
                    raise self._lost(member) from None
                if said == kind:
                    answers[member.rank] = value
                else:
                    other(member.rank, value)
            if time.monotonic() >= end and len(answers) < len(self._members):
                names = ", ".join(
                    str(member.rank.component)
                    for member in self._members
                    if member.rank not in answers
                )
                raise RankSilent(
                    f"the worker on {names} has not answered within {within_s:g} s and was killed"
                )
            tick()
        return answers

    def _lost(self, first: _Member[R]) -> RankLost:
        """How a rank was lost.

        One that a signal ended is named before one that failed for want of it.
        """
        first.process.join(END_S)
        signalled = (one for one in (first, *self._members) if (one.process.exitcode or 0) < 0)
        member = next(signalled, first)
        code, name = member.process.exitcode, member.rank.component
        if code is None:
            return RankLost(f"the worker on {name} closed its pipe and did not end")
        if code < 0:
            hint = " (the kernel does so when memory runs out)" if -code == signal.SIGKILL else ""
            return RankLost(f"the worker on {name} was ended by signal {-code}{hint}")
        return RankLost(f"the worker on {name} ended early with exit code {code}")

    def _drain(self, other: MessageHandler[R]) -> None:
        for member in self._members:
            try:
                while member.connection.poll():
                    said, value = member.connection.recv()
                    if said == "miscompare":
                        other(member.rank, value)
            except (EOFError, OSError):
                continue


@dataclass(frozen=True, slots=True)
class Entered:
    """A rank is about to begin what all of them do together."""


@dataclass(slots=True)
class TaskPipe:
    """A rank's end of its pipe: the tasks that it is sent, and what it says of them."""

    connection: Connection
    reported: int = 0

    def tasks(self) -> Iterator[Any]:
        """The tasks, one after the other, until the rank is told to leave."""
        while (task := self.connection.recv()[1]) is not None:
            yield task

    def enter(self, fault: str | None = None) -> None:
        """Say that the rank is ready, wait for all others, and say that it enters the task.

        An injected fault makes it die or hang before it enters.
        """
        self.connection.send(("ready", None))
        self.connection.recv()
        if fault == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hang":
            time.sleep(3600)
        self.connection.send(("entered", Entered()))

    def report(self, wrong: object) -> None:
        """Report a wrong result, of which the first REPORTED are sent."""
        self.reported += 1
        if self.reported <= REPORTED:
            self.connection.send(("miscompare", wrong))


def sleep_until(moment: float) -> None:
    """Return at this moment of the monotonic clock.

    The last millisecond is a busy wait, because sleeps end late.
    """
    while (left := moment - time.monotonic()) > 0:
        if left > 0.001:
            time.sleep(left - 0.001)


def _live(rank: R, connection: Connection, body: Body[R], parent: int) -> None:
    """The whole life of a rank.

    A failure ends it with where it was and what it was on standard error, in one write, and exit
    code 1: a rank that loses another one may be ended while it says so.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # the parent died before the line above took effect
        os._exit(1)
    # only the parent speaks the protocol: a stray print of a rank must not tear its lines
    os.dup2(2, 1)
    try:
        rank.prepare()
        body(rank, connection)
    except Exception as error:  # noqa: BLE001 - whatever it is, it ends the load
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        said = f"a worker failed in {where}\n{type(error).__name__}: {error}\n"
        os.write(2, said.encode("utf-8", "backslashreplace"))
        sys.exit(1)
