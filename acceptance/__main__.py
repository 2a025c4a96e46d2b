"""The command line: `rigproof`, also `python -m acceptance`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from acceptance import __version__

USAGE, UNJUDGED = 2, 3
TOOLS = ("kernel-log", "stress-ng", "stressapptest")
EPILOG = "Exit codes: 0 PASS, 1 FAIL, 3 UNJUDGED (an error, a skip that nobody waived, or stopped), 2 for a mistake in the call."


def _seconds(text: str) -> float:
    value = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not 1 <= value <= 30 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 1 to 2592000 (30 days)")
    return value


def _patterns(text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError("name at least one check, subject or pattern")
    return found


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--machine", metavar="FILE", type=Path, help="machine file: what should be there, limits of its own, waivers"
    )
    parser.add_argument(
        "--profile", metavar="NAME", default="accept", help="smoke, accept, nightly or soak (default: accept)"
    )
    parser.add_argument(
        "--station",
        choices=("auto", "docker", "host"),
        default="auto",
        help="where loads run: a container, or in place (default: auto)",
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("reports"), help="folder for runs (default: reports)"
    )
    parser.add_argument(
        "--only",
        metavar="EXPR",
        type=_patterns,
        default=(),
        help="checks by id, subject or shell pattern, with commas: cpu,memory.*",
    )
    parser.add_argument(
        "--burn", metavar="SECONDS", type=_seconds, help="how long each burn lasts, in place of the profile's time"
    )


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="rigproof", description="Acceptance test for a newly built NVIDIA GPU machine.", epilog=EPILOG
    )
    top.add_argument("--version", action="version", version=f"rigproof {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, epilog=EPILOG)

    _run_arguments(verb("accept", "test the machine and say whether it is fit"))
    _run_arguments(
        verb("plan", "show what accept would do: checks, limits, time, and what it cannot detect; runs nothing")
    )
    inventory = verb("inventory", "show the machine as it is found, as JSON")
    inventory.add_argument(
        "--write", metavar="FILE", type=Path, help="draft a machine file from it, to be corrected by hand"
    )
    for name, text in (
        ("judge", "judge a recorded run again, from its journal"),
        ("report", "write junit.xml, report.html and verdict.json of a recorded run again"),
    ):
        verb(name, text).add_argument(
            "run_dir", metavar="RUN_DIR", type=Path, help="folder of the run, such as reports/latest"
        )
    read = verb("read", "read one recorded output of a tool and say as JSON what it is worth")
    read.add_argument("tool", metavar="TOOL", choices=TOOLS, help=", ".join(TOOLS))
    read.add_argument("file", metavar="FILE", type=Path, help="the recorded output; - for standard input")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Whatever happens, the user gets one sentence and not a traceback."""
    options = parser().parse_args(arguments)
    # Imported here: `rigproof --help` and a mistyped option answer at once.
    from acceptance import verbs

    verb: Callable[[argparse.Namespace], int] = verbs.VERBS[options.verb]
    try:
        return verb(options)
    except verbs.USER_ERRORS as error:
        sys.stderr.write(f"rigproof: {error}\n")
        return USAGE
    except verbs.TROUBLE as error:
        sys.stderr.write(f"rigproof: {error}\n")
        return UNJUDGED
    except KeyboardInterrupt:
        sys.stderr.write("rigproof: stopped\n")
        return UNJUDGED
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        sys.stderr.close()
        return UNJUDGED


if __name__ == "__main__":
    sys.exit(main())
