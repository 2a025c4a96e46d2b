"""Reckoning in a process of its own, beside faults that are played in threads: those of one
Python take turns on one processor.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

from acceptance.process import reaper

T = TypeVar("T")


class BesideError(Exception):
    """The process ended without a result; the message is one sentence, and its
    traceback was printed.
    """


class Beside(Generic[T]):
    """Starts `reckon` at once. To be made before any thread is: the process is a fork.

    It ends with this one.
    """

    def __init__(self, what: str, reckon: Callable[[], T]) -> None:
        self._what = what
        context = multiprocessing.get_context("fork")
        self._answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_tell, args=(sender, reckon), daemon=True)
        self._process.start()
        sender.close()

    def result(self) -> T:
        """What came of it, when it has ended. Raises BesideError where nothing came."""
        try:
            found: T = self._answer.recv()
        except EOFError:
            raise BesideError(
                f"{self._what} ended without a result: its traceback stands above, please report it"
            ) from None
        finally:
            self._process.join()
        return found


def _tell(sender: Connection, reckon: Callable[[], T]) -> None:
    reaper.prctl(reaper.PR_SET_PDEATHSIG, signal.SIGKILL)  # a fork holds the machine's lock as well
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is this process's maker that is stopped
    sender.send(reckon())  # a traceback is printed by multiprocessing itself
