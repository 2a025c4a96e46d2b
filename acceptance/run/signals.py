"""How somebody ends rigproof: SIGINT, SIGTERM and SIGHUP, before a run has begun and during one."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UserInterrupt(BaseException):
    """Somebody ended rigproof before a run had begun.

    Not an Exception, so that nothing on the way takes it for a fault.
    """


class StopRequest:
    """Whether somebody asked the run to end, and how: `reason` is None until then.

    A flag that is looked at, and not an exception: one that came out of a half-written record would
    cost the journal its last word.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def handle(self, number: int, _frame: FrameType | None = None) -> None:
        """The signal handler; the first word counts."""
        self.reason = self.reason or f"stopped by {signal.Signals(number).name}"


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, object]:
    """Install a handler for every stop signal that is not ignored: `nohup` and `&` mean what they
    say.

    Returns the handlers before.
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
    """Turn SIGINT, SIGTERM and SIGHUP into Stopped, for the time before a run, when nothing is
    written that could be torn.
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
    """Turn SIGINT, SIGTERM and SIGHUP into a Stop for as long as a run and its reports last."""
    stop = StopRequest()
    before = _handle(stop.handle)
    try:
        yield stop
    finally:
        _restore(before)
