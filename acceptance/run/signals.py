"""Handling of SIGINT, SIGTERM and SIGHUP, before a run has begun and during one.

A lost terminal (SIGHUP) ends neither the image's build nor the run.

Whether a run outlives the terminal that it was started from.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from acceptance.core.message import Message, english
from acceptance.process import command
from acceptance.process.deadline import Deadline

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A request to end the run; `reason` is None until there is one.

    It is a flag that the run polls, and not an exception: an exception in the middle of a record
    would cost the journal its last line.
    """

    def __init__(self) -> None:
        self.reason: Message | None = None

    def handle(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler; the first signal's reason is kept."""
        stopped = Message(
            english("stopped_by_signal", "stopped by {signal}"),
            {"signal": signal.Signals(number).name},
        )
        self.reason = self.reason or stopped


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """The handler of SIGHUP; programs that are started would inherit SIG_IGN."""


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, object]:
    """Install a handler for every stop signal that is not ignored, and return the old handlers.

    Ignored signals stay ignored, for `nohup` and `&`. SIGHUP changes nothing.
    """
    before: dict[signal.Signals, object] = {}
    for number in (*STOP_SIGNALS, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, _go_on if number == signal.SIGHUP else handler)
    return before


def _restore(before: dict[signal.Signals, object]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)  # type: ignore[arg-type]  # it is what signal.signal gave


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into KeyboardInterrupt, which says so.

    For the time before a run, when no record is being written.
    """

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(f"stopped by {signal.Signals(number).name}")

    before = _handle(stop)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def stoppable() -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a StopRequest, during a run and its reports."""
    stop = StopRequest()
    before = _handle(stop.handle)
    try:
        yield stop
    finally:
        _restore(before)


_ANSWER_S = 3.0
# The unit of a login. Root's own logins are spared (KillExcludeUsers).
_LOGIN = re.compile(r"/user-[1-9][0-9]*\.slice/session-[^/]+\.scope")
_SETTING = (
    "get-property",
    "org.freedesktop.login1",
    "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager",
    "KillUserProcesses",
)


def has_terminal() -> bool:
    """Whether this process talks to a terminal."""
    return any(os.isatty(number) for number in (0, 1, 2))


def ended_at_logout(root: Path = Path("/")) -> bool:
    """Whether systemd ends this process, whatever it handles, when its login ends.

    It does where this process belongs to a login and KillUserProcesses is set.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
        if not _LOGIN.search(groups):
            return False
        argv = [command.find("busctl"), *_SETTING]
        return command.run(argv, deadline=Deadline.after(_ANSWER_S)).stdout.strip() == "b true"
    except (OSError, command.CommandError):  # no systemd
        return False
