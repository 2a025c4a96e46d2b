"""Standard output of a verb that exists for what it prints, and its exit code where that fails.

Output that could not be written makes no 0. It changes no other code: a FAIL stays one.
"""

from __future__ import annotations

import sys

from acceptance.cli.options import say_error
from acceptance.core.exit_code import PASS, UNJUDGED


def printed(data: bytes, code: int = PASS) -> int:
    """Write to standard output; returns the exit code."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        return after_failure(error, code)
    return code


def after_failure(error: OSError, code: int) -> int:
    """The exit code where standard output failed, which is said unless its reader has left."""
    if not isinstance(error, BrokenPipeError):
        say_error(f"standard output: cannot be written ({error.strerror})")
    return code or UNJUDGED
