"""The command line: `rigproof`, also `python -m acceptance`."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from acceptance import __version__
from acceptance.reports.text import one_line

USAGE, UNJUDGED = 2, 3
TOOLS = (
    "gpu-burn",
    "deviceQuery",
    "bandwidthTest",
    "p2pBandwidthLatencyTest",
    "nvbandwidth",
    "topo",
    "kernel-log",
    "stress-ng",
    "stressapptest",
)
EPILOG = "Exit codes: 0 PASS, 1 FAIL, 3 UNJUDGED (an error, a skip that nobody waived, or stopped), 2 for a mistake in the command."

COMPARED = "Exit codes: 0 nothing is worse than in the first run, 1 something is, 3 a run cannot be read, 2 for a mistake in the call."


class _Parser(argparse.ArgumentParser):
    """One sentence for a mistake, instead of a page of usage before it; `--help` has the page. An option is written out in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"rigproof: {one_line(message)}: see `{self.prog} --help`\n")


def _path(text: str) -> Path:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # the journal and every report are UTF-8, and hold the name
        raise argparse.ArgumentTypeError(f"the name {text!a} is not UTF-8: give it another one") from None
    return Path(text)


def _seconds(text: str) -> float:
    value = float(text) if text.isascii() and text.replace(".", "", 1).isdigit() else 0.0
    if not 1 <= value <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 1 to 2592000 (30 days)")
    return value


def _patterns(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name at least one check, subject or pattern")
    return found


def _gpus(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name at least one GPU by its index or UUID")
    return found


def _language_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lang",
        metavar="LANG",
        help="language of page and terminal: en or zh-CN (default: the locale's, else en)",
    )


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--machine",
        metavar="FILE",
        type=_path,
        help="machine file: what should be in the machine, limits of its own, and what is accepted as it is",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default="accept",
        help="how much is tested, and for how long: smoke, accept, nightly or soak (default: accept)",
    )
    parser.add_argument(
        "--station",
        choices=("auto", "docker", "host"),
        default="auto",
        help="where loads run: a container, or in place (default: a container where an engine answers)",
    )
    parser.add_argument(
        "--image",
        metavar="REF",
        help="an image that is here, in place of the one of this checkout (such a run is never PASS)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=_path,
        default=Path("reports"),
        help="folder in which each run gets a folder of its own (default: reports)",
    )
    parser.add_argument(
        "--only",
        metavar="EXPR",
        type=_patterns,
        default=(),
        help="checks by id, subject or shell pattern, with commas: cpu,memory.*",
    )
    parser.add_argument(
        "--gpus",
        metavar="LIST",
        type=_gpus,
        default=(),
        help="GPUs to test, by index or UUID, with commas (default: all; a run of some of them is no acceptance)",
    )
    parser.add_argument(
        "--burn",
        metavar="SECONDS",
        type=_seconds,
        help="how long the whole machine burns, in place of the profile's time; burns of single parts last no longer",
    )
    _language_argument(parser)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(prog="rigproof", description="Acceptance test for a newly built NVIDIA GPU machine.", epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"rigproof {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, text: str, epilog: str = EPILOG) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, epilog=epilog)

    _run_arguments(verb("accept", "test the machine and say whether it is fit"))
    _run_arguments(
        verb("plan", "show what accept would do: checks, limits, time, and what it cannot detect; runs nothing")
    )
    inventory = verb("inventory", "show the machine as it is found, as JSON")
    inventory.add_argument(
        "--write", metavar="FILE", type=_path, help="draft a machine file from it, to be corrected by hand"
    )
    for name, text in (
        ("judge", "judge a recorded run again, from its journal"),
        ("report", "write junit.xml, report.html and verdict.json of a recorded run again"),
    ):
        recorded = verb(name, text)
        recorded.add_argument(
            "run_dir", metavar="RUN_DIR", type=_path, help="folder of the run, such as reports/latest"
        )
        _language_argument(recorded)
    compare = verb("compare", "show recorded runs side by side, and which differences lie outside the noise", COMPARED)
    compare.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=_path, help="folders of two runs or more")
    compare.add_argument("--page", metavar="FILE", type=_path, help="write the comparison as a page, too")
    compare.add_argument("--all", action="store_true", help="show what lies within the noise as well")
    _language_argument(compare)
    read = verb("read", "read one recorded output of a tool and say as JSON what it is worth")
    read.add_argument("tool", metavar="TOOL", choices=TOOLS, help=", ".join(TOOLS))
    read.add_argument("file", metavar="FILE", type=_path, help="the recorded output; - for standard input")
    return top


def _import_own() -> None:
    """Look for modules where rigproof is installed, not where the user happens to stand: no stray pytest.py may run in pytest's place.

    Sessions are started so from the beginning (see `acceptance.session`).
    """
    stray = {Path(entry).absolute() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    stray |= set() if sys.flags.safe_path else {Path.cwd()}
    sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() not in stray]


def _streams() -> None:
    """Standard streams that the caller has closed lead nowhere from now on: a journal must not be opened in their place."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without our letters must not end a run


def _say(text: str) -> None:
    # Errors quote what they found: a key of a machine file, the name of a folder, a tool's last words.
    with contextlib.suppress(OSError):  # standard error is gone as well: the exit code still tells
        sys.stderr.write(f"rigproof: {one_line(text, 10_000)}\n")
        sys.stderr.flush()


def _flush(code: int) -> int:
    """Bring out what was printed. The verdict does not depend on it, but what was to be printed must not be lost unsaid."""
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try again at its end, and then exit with a code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or UNJUDGED
    return code


def _run(options: argparse.Namespace) -> int:
    _import_own()
    # Imported here: `rigproof --help` and a mistyped option answer at once.
    from acceptance import verbs

    verb: Callable[[argparse.Namespace], int] = verbs.VERBS[options.verb]
    try:
        return verb(options)
    except verbs.USER_ERRORS as error:
        _say(str(error))
        return USAGE
    except verbs.TROUBLE as error:
        _say(str(error))
        return UNJUDGED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Whatever happens, the user gets one sentence and not a traceback.

    Python's own exit code for an exception is 1, which here means FAIL: no trouble of rigproof's may look like a bad machine.
    """
    _streams()
    options = parser().parse_args(arguments)
    try:
        return _flush(_run(options))
    except KeyboardInterrupt:
        _say("stopped")
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        pass
    except OSError as error:
        what = error.filename or "a file"
        _say(f"{what}: cannot be read or written ({error.strerror or error}): mend that, then start again")
    except Exception as error:  # noqa: BLE001 - see above; the sentence says where it was
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}, line {where.lineno}"
        _say(
            f"an error of rigproof's own in {place} ({type(error).__name__}: {error}): the machine is unjudged; please report it"
        )
    return _flush(UNJUDGED)


if __name__ == "__main__":
    sys.exit(main())
