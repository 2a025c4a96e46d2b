"""Handling of SIGINT, SIGTERM and SIGHUP, before a run has begun and during one.

A lost terminal (SIGHUP) ends neither the image's build nor the run.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from acceptance.core.message import Message

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
        stopped = Message("stopped_by_signal", {"signal": signal.Signals(number).name})
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
