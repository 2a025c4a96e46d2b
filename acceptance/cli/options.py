"""The form of the command line: errors, exit codes, values, and the arguments of several verbs."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from datetime import time
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from acceptance.cli import exit_codes
from acceptance.core.exit_code import USAGE
from acceptance.core.nearest import nearest
from acceptance.reports.text import one_line, quoted_code

FRESH_HOURS = 30.0  # a night a day, and some hours for one that began late
Number = TypeVar("Number", bound=float)
_MOST_DIGITS = 30  # of a number; Python refuses to read some thousands


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one sentence, with the word that may be meant.

    Options cannot be abbreviated. `on_error` gets the arguments before an error is printed.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._given: Sequence[str] = ()
        self.on_error: Callable[[Sequence[str]], None] | None = None

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """The arguments.

        What is left over is an error here, in the verb's own parser, which knows its options.
        """
        self._given = sys.argv[1:] if args is None else args
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return cast(argparse.Namespace, found), []

    def _misspelt(self) -> str:
        """The question whether another option is meant by one that there is not."""
        known = {
            text.lstrip("-"): text for action in self._actions for text in action.option_strings
        }
        for word in itertools.takewhile(lambda word: word != "--", self._given):
            option = word.partition("=")[0]
            if not option.startswith("-"):
                if self._subparsers is not None:
                    break  # the options after a verb are the verb's
            elif option not in known.values() and (near := nearest(option.lstrip("-"), known)):
                return f": did you mean {known[near[0]]}?"
        return ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(one) for one in action.choices]
            near = nearest(str(value), known)
            cure = f": did you mean {near[0]}?" if near else f" (choose from {', '.join(known)})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{cure}")

    def print_help(self, file: Any = None) -> None:
        """Print the help; unlike argparse, let an output that fails be known."""
        (file or sys.stdout).write(quoted_code(self.format_help()))

    def error(self, message: str) -> NoReturn:
        """Print the error and the command that shows the help; exits with code 2."""
        if self.on_error is not None:
            self.on_error(self._given)
        text = f"{one_line(message)}{self._misspelt()}"
        self.exit(USAGE, quoted_code(f"rigproof: {text}: see `{self.prog} --help`\n"))


def say_error(text: str) -> None:
    """Print an error as one line on standard error."""
    # one_line: errors quote foreign text (a key of a machine file, a folder's name, a tool's last
    # lines).
    shown = quoted_code(one_line(text, 10_000))
    with contextlib.suppress(OSError):  # standard error is gone too: only the exit code is left
        sys.stderr.write(f"rigproof: {shown}\n")
        sys.stderr.flush()


def add(
    verbs: argparse._SubParsersAction[Any], name: str, text: str, of: str = ""
) -> argparse.ArgumentParser:
    """Add a verb, or a verb of the verb `of`; `text` is its help. Returns its parser."""
    epilog = exit_codes.epilog(f"{of} {name}".strip())
    parser: argparse.ArgumentParser = verbs.add_parser(
        name, help=text, description=text, epilog=epilog
    )
    return parser


def path(text: str) -> Path:
    """A path that can be encoded as UTF-8, and is not the empty text of an unset variable."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty: give a path, or . for this folder")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # the journal and every report are UTF-8 and hold the path
        raise argparse.ArgumentTypeError(
            f"the name {text!a} is not UTF-8: give it another one"
        ) from None
    return Path(text)


def numbers(kind: type[Number], low: float, high: float, what: str) -> Callable[[str], Number]:
    """The type of an argument: a number of this kind from `low` to `high`, `what` in its error."""

    def read(text: str) -> Number:
        digits = text.replace(".", "", 1) if kind is float else text
        plain = digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS
        value = kind(text) if plain else None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no {what}")
        return value

    return read


seconds = numbers(float, 1, 30 * 86400, "number of seconds from 1 to 2592000 (30 days)")
number = numbers(int, 1, 9999, "number from 1 to 9999")
count = numbers(int, 1, 1_000_000, "whole number from 1 to 1000000")
amount = numbers(float, 0, 1e6, "number from 0 to 1000000")


def sheets(parser: argparse.ArgumentParser) -> None:
    """Add `--sheets`, the folder of the site's sheets."""
    parser.add_argument(
        "--sheets",
        metavar="DIR",
        type=path,
        help=(
            "GPU and disk sheets of the site, in DIR/models and DIR/disks (default: "
            "/etc/rigproof/sheets, if it is there; none: rigproof's own alone)"
        ),
    )


def ocp(parser: argparse.ArgumentParser) -> None:
    """Add `--ocp`."""
    parser.add_argument(
        "--ocp",
        metavar="FILE",
        type=path,
        help="also write the run as OCP Test & Validation output, version 2.0 (JSON Lines)",
    )


def _names(text: str, what: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"name at least one {what}")
    return found


def patterns(text: str) -> tuple[str, ...]:
    """Checks by id, subject or shell pattern, separated by commas."""
    return _names(text, "check, subject or pattern")


def gpus(text: str) -> tuple[str, ...]:
    """GPUs by index or UUID, separated by commas."""
    return _names(text, "GPU by its index or UUID")


def time_of_day(text: str) -> time:
    """A time of day in hours and minutes."""
    if not re.fullmatch("([01]?[0-9]|2[0-3]):[0-5][0-9]", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time of day: give hours and minutes, such as 03:30"
        )
    hour, _, minute = text.partition(":")
    return time(int(hour), int(minute))


def language(parser: argparse.ArgumentParser) -> None:
    """Add --lang, the language of page and terminal."""
    parser.add_argument(
        "--lang",
        metavar="LANG",
        help="language of page and terminal: en or zh-CN (default: the locale's, else en)",
    )


def out(
    parser: argparse.ArgumentParser,
    default: Path | None = Path("reports"),
    text: str = "output folder; each run gets a subfolder (default: reports)",
) -> None:
    """Add --out, the folder of the runs and their history."""
    parser.add_argument("--out", metavar="DIR", type=path, default=default, help=text)


def due(parser: argparse._ActionsContainer, default: str) -> None:
    """Add --due, the list of the machines of a fleet."""
    parser.add_argument(
        "--due",
        metavar="FILE",
        type=path,
        help=f"machines that are due, one on each line (default: {default})",
    )


def run_dir(parser: argparse.ArgumentParser) -> None:
    """Add the argument for one recorded run."""
    parser.add_argument(
        "run_dir", metavar="RUN", type=path, help="folder of the run, such as reports/latest"
    )


def notifications(parser: argparse.ArgumentParser) -> None:
    """Add the notification targets."""
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        type=path,
        help=(
            "write the verdict and all figures as metrics for node-exporter's textfile collector "
            "(*.prom)"
        ),
    )
    parser.add_argument(
        "--on-fail",
        metavar="COMMAND",
        help=(
            "command to run on FAIL or UNJUDGED, without a shell; it gets verdict.json on "
            "standard input"
        ),
    )
    parser.add_argument(
        "--webhook",
        metavar="URL",
        help="URL to post every verdict.json to; @FILE reads the URL from a file",
    )
    parser.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        type=path,
        help="file with the secret that signs the webhook (HMAC-SHA256)",
    )
