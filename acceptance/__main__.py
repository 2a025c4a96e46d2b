"""The command line: `rigproof`, also `python -m acceptance`."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from acceptance.cli.options import say_error
from acceptance.cli.parser import parser, verb
from acceptance.core.exit_code import UNJUDGED, USAGE


def _import_own() -> None:
    """Remove the current folder and PYTHONPATH from `sys.path`.

    A stray pytest.py in the user's folder must not run in place of pytest. Sessions are started
    this way from the beginning (see `acceptance.session.context`).
    """
    stray = {
        Path(entry).absolute()
        for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry
    }
    stray |= set() if sys.flags.safe_path else {Path.cwd()}
    sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() not in stray]


def _end_on_sigterm() -> None:
    """Handle SIGTERM where this is the first process of a container.

    The kernel gives that process no signal without a handler: the notice of a container's end would
    be lost until a run has its own, and the run would begin after it.
    """

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        say_error("stopped by SIGTERM")
        sys.exit(UNJUDGED)

    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, stop)


def _streams() -> None:
    """Open /dev/null for each standard stream that the caller has closed.

    Otherwise a journal could be opened under that descriptor, and output would be written into it.
    It is open for reading alone: output that nobody can read is lost, and must be known to be.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # takes the lowest free number, which is this one
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a locale without our letters must not end a run
            stream.reconfigure(errors="backslashreplace")


def _flush(code: int) -> int:
    """Flush standard output; returns the exit code.

    Output that cannot be written turns exit code 0 into UNJUDGED: it must not be lost silently.
    """
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except OSError:
            # Python would flush again at exit, and then exit with a code of its own.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout:
                return code or UNJUDGED
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Every error becomes one sentence, never a traceback. Python's own exit code for an exception is
    1, which means FAIL here: an error of rigproof must not look like a bad machine.
    """
    _end_on_sigterm()
    _streams()
    _import_own()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = parser(given).parse_args(given)
        return _flush(verb(options.verb).run(options))
    except SystemExit as end:  # of argparse: help, the version, or a usage error
        return _flush(end.code if isinstance(end.code, int) else USAGE)
    except KeyboardInterrupt as stop:
        say_error(str(stop) or "stopped")
    except BrokenPipeError:  # the reader of our output has closed it, as `| head` does
        pass
    except OSError as error:
        from acceptance.cli import errors

        say_error(
            f"{error.filename or 'a file'}: cannot be read or written ({errors.reason(error)}): "
            "fix that, then start again"
        )
    except Exception as error:  # noqa: BLE001 - see above; the sentence says where it was
        from acceptance.cli import errors
        from acceptance.core.message import UserError

        if isinstance(error, errors.SENTENCES):
            say_error(str(error))
            return _flush(USAGE if isinstance(error, UserError) else UNJUDGED)
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        say_error(
            f"an error of rigproof's own in {place} ({type(error).__name__}: {error}): the "
            "machine is unjudged; please report it"
        )
    return _flush(UNJUDGED)


if __name__ == "__main__":
    sys.exit(main())
