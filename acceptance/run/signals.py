"""Handling of SIGINT, SIGTERM and SIGHUP, before a run has begun and during one."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UserInterrupt(BaseException):
    """The user ended rigproof before a run had begun.

    Not an Exception, so that no handler takes it for a fault.
    """


class StopRequest:
    """A request to end the run; `reason` is None until there is one.

    It is a flag that the run polls, and not an exception: an exception in the middle of a record
    would cost the journal its last line.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def handle(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler; the first signal's reason is kept."""
        self.reason = self.reason or f"stopped by {signal.Signals(number).name}"


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, object]:
    """Install a handler for every stop signal that is not ignored, and return the old handlers.

    Ignored signals stay ignored, for `nohup` and `&`.
    """
    before: dict[signal.Signals, object] = {}
    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    return before


def _restore(before: dict[signal.Signals, object]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)  # type: ignore[arg-type]  # it is what signal.signal gave


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into UserInterrupt.

    For the time before a run, when no record is being written.
    """

    def stop(number: int, _frame: FrameType | None) -> NoReturn:
        raise UserInterrupt(f"stopped by {signal.Signals(number).name}")

    before = _handle(stop)
    try:
        yield
    finally:
        _restore(before)


@contextlib.contextmanager
def stoppable() -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into a StopRequest, during a run and its reports."""
    stop = StopRequest()
    before = _handle(stop.handle)
    try:
        yield stop
    finally:
        _restore(before)
