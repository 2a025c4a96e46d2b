"""Start and end of every GPU load program: environment, and errors in one sentence."""

from __future__ import annotations

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
    """Run the work of the load `name` and return the exit status.

    The status is 0, or 1 after one sentence on standard error. `strays` are environment variables
    that would change the measurement; they are removed. For CardError, RuntimeError (raised by CUDA
    and torch), ValueError, MemoryError and `errors` the sentence is the error's first line.
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
    """End the process, immediately where the status is not 0.

    On a failure torch's own clean-up could wait for a GPU that never answers, or abort in a lost
    context, and bury the error message.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if status:
        os._exit(status)
