"""The command line: `rigproof`, also `python -m acceptance`."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from acceptance.cli.options import USAGE
from acceptance.cli.parser import parser, verb
from acceptance.reports.text import one_line

UNJUDGED = 3


def _import_own() -> None:
    """Look for modules where rigproof is installed, not where the user happens to stand: no stray
    pytest.py may run in pytest's place.

    Sessions are started so from the beginning (see `acceptance.session.context`).
    """
    stray = {
        Path(entry).absolute()
        for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if entry
    }
    stray |= set() if sys.flags.safe_path else {Path.cwd()}
    sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() not in stray]


def _streams() -> None:
    """Standard streams that the caller has closed lead nowhere from now on: a journal must not
    be opened in their place.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(
                os.devnull, os.O_RDWR
            )  # takes the lowest number that is free, which is this one
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a locale without our letters must not end a run


def _say(text: str) -> None:
    # Errors quote what they found: a key of a machine file, the name of a folder, a tool's last
    # words.
    with contextlib.suppress(OSError):  # standard error is gone as well: the exit code still tells
        sys.stderr.write(f"rigproof: {one_line(text, 10_000)}\n")
        sys.stderr.flush()


def _flush(code: int) -> int:
    """Bring out what was printed.

    The verdict does not depend on it, but what was to be printed must not be lost unsaid.
    """
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try again at its end, and then exit with a code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or UNJUDGED
    return code


def _run(options: argparse.Namespace) -> int:
    try:
        return verb(options.verb).run(options)
    except BaseException as error:
        from acceptance.cli import errors

        for kinds, code in ((errors.USER_ERRORS, USAGE), (errors.SYSTEM_ERRORS, UNJUDGED)):
            if isinstance(error, kinds):
                _say(str(error))
                return code
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    Whatever happens, the user gets one sentence and not a traceback.

    Python's own exit code for an exception is 1, which here means FAIL: no trouble of rigproof's
    may look like a bad machine.
    """
    _streams()
    _import_own()
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = parser(given).parse_args(given)
        return _flush(_run(options))
    except KeyboardInterrupt:
        _say("stopped")
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        pass
    except OSError as error:
        what = error.filename or "a file"
        _say(
            f"{what}: cannot be read or written ({error.strerror or error}): mend that, then "
            "start again"
        )
    except Exception as error:  # noqa: BLE001 - see above; the sentence says where it was
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        _say(
            f"an error of rigproof's own in {place} ({type(error).__name__}: {error}): the "
            "machine is unjudged; please report it"
        )
    return _flush(UNJUDGED)


if __name__ == "__main__":
    sys.exit(main())
