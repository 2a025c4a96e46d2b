"""Start and end of every load's program: environment, and errors in one sentence."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable


class LoadError(Exception):
    """A load cannot go on; the message is one sentence for the user."""


class OutOfMemory(LoadError):
    """The GPU has too little memory for what is tried; the load goes on with less."""


# CUDA and torch raise RuntimeError; the kernel refuses memory, mappings and files by OSError.
_REPORTED = (LoadError, RuntimeError, ValueError, MemoryError, OSError)


def run_guarded(name: str, work: Callable[[], None], cleared: Iterable[str] = ()) -> int:
    """Run the work of the load `name` and return the exit status.

    The status is 0, or 1 after one sentence on standard error: the first line of the error. The
    environment variables `cleared` would change the measurement; they are removed.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for variable in cleared:
        os.environ.pop(variable, None)
    try:
        work()
    except _REPORTED as error:
        print(f"{name}: {(str(error) or type(error).__name__).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def exit_load(status: int) -> None:
    """End the process, immediately where the status is not 0.

    On a failure torch's own clean-up could wait for a GPU that never answers, or abort in a lost
    context, and bury the error message.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if status:
        os._exit(status)
