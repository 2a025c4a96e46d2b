"""How every GPU load begins and ends as a program: a clean environment, errors in one sentence,
durations of its command line.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence

from acceptance.loads.card import CardError


def run_guarded(
    name: str,
    work: Callable[[], None],
    *,
    strays: Sequence[str] = (),
    errors: tuple[type[Exception], ...] = (),
) -> int:
    """Do the work of the load `name`; the exit status: 0, or 1 after one sentence on standard
    error.

    `strays` are environment variables that would change what is measured, and are removed.
    CardError, RuntimeError (what CUDA and torch say), ValueError, MemoryError and `errors` are told
    in their first line.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stray in strays:
        os.environ.pop(stray, None)
    reported: tuple[type[Exception], ...] = (
        CardError,
        RuntimeError,
        ValueError,
        MemoryError,
        *errors,
    )
    try:
        work()
    except reported as error:
        print(f"{name}: {(str(error) or type(error).__name__).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def exit_load(status: int) -> None:
    """End the process; at once where something failed.

    torch would tidy up on a GPU that may never answer, or abort in a context that was lost, and
    bury the sentence.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if status:
        os._exit(status)


def seconds(text: str) -> float:
    """A finite number of seconds above 0, thirty days at most; raises argparse.ArgumentTypeError
    for anything else.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
