"""What can be typed: the verbs of the command line, their options, and what each option takes. A verb is one function here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from acceptance import __version__
from acceptance.reports.text import one_line

USAGE = 2  # the exit code of a mistake in the call
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
EPILOG = "Exit codes: 0 PASS, 1 FAIL, 3 UNJUDGED (an error, a skip that nobody waived, or stopped), 2 for a mistake in the call."
COMPARED = "Exit codes: 0 nothing is worse than in the first run, 1 something is, 3 a run cannot be read, 2 for a mistake in the call."

_Verb = Callable[..., argparse.ArgumentParser]  # makes a verb's parser, of its name, what it does, and its exit codes


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


def _out_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=_path,
        default=Path("reports"),
        help="folder in which each run gets a folder of its own (default: reports)",
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
    _out_argument(parser)
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


def _recorded_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN_DIR", type=_path, help="folder of the run, such as reports/latest")
    _language_argument(parser)


def _accept(verb: _Verb) -> None:
    _run_arguments(verb("accept", "test the machine and say whether it is fit"))


def _plan(verb: _Verb) -> None:
    _run_arguments(
        verb("plan", "show what accept would do: checks, limits, time, and what it cannot detect; runs nothing")
    )


def _inventory(verb: _Verb) -> None:
    parser = verb("inventory", "show the machine as it is found, as JSON")
    parser.add_argument(
        "--write", metavar="FILE", type=_path, help="draft a machine file from it, to be corrected by hand"
    )


def _judge(verb: _Verb) -> None:
    _recorded_arguments(verb("judge", "judge a recorded run again, from its journal"))


def _report(verb: _Verb) -> None:
    _recorded_arguments(verb("report", "write junit.xml, report.html and verdict.json of a recorded run again"))


def _compare(verb: _Verb) -> None:
    parser = verb("compare", "show recorded runs side by side, and which differences lie outside the noise", COMPARED)
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=_path, help="folders of two runs or more")
    parser.add_argument("--page", metavar="FILE", type=_path, help="write the comparison as a page, too")
    parser.add_argument("--all", action="store_true", help="show what lies within the noise as well")
    _language_argument(parser)


def _count(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 1000000")
    return value


def _amount(text: str) -> float:
    if not (text.isascii() and text.replace(".", "", 1).isdigit()) or float(text) > 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 1000000")
    return float(text)


def _history(verb: _Verb) -> None:
    parser = verb("history", "show what the runs of this machine measured from night to night", HISTORY)
    parser.add_argument(
        "measurement", metavar="MEASUREMENT", nargs="?", help="one measurement by name or shell pattern: gemm_bf16*"
    )
    parser.add_argument("--component", metavar="C", help="one component by name or shell pattern: gpu0")
    _out_argument(parser)
    parser.add_argument("--machine-id", metavar="ID", help="another machine whose history is there (default: this one)")
    parser.add_argument(
        "--nights", metavar="N", type=_count, help="the last so many (default: 120; for --export all of them)"
    )
    parser.add_argument("--page", metavar="FILE", type=_path, help="write it as a page with plots, too")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--export", choices=("csv", "jsonl"), help="write every value to standard output, for programs")
    action.add_argument(
        "--rebuild", action="store_true", help="make the history anew from the runs; the old one is kept"
    )
    action.add_argument(
        "--prune",
        action="store_true",
        help="remove old runs with their telemetry; never the baseline, the newest, or what is no run of this machine",
    )
    parser.add_argument(
        "--keep-days", metavar="N", type=_amount, help="with --prune: runs and values of so many days stay"
    )
    parser.add_argument(
        "--keep-gib", metavar="N", type=_amount, help="with --prune: the newest runs of so many GiB stay"
    )
    _language_argument(parser)


def _read(verb: _Verb) -> None:
    parser = verb("read", "read one recorded output of a tool and say as JSON what it is worth")
    parser.add_argument("tool", metavar="TOOL", choices=TOOLS, help=", ".join(TOOLS))
    parser.add_argument("file", metavar="FILE", type=_path, help="the recorded output; - for standard input")


_VERBS = (_accept, _plan, _inventory, _judge, _report, _compare, _history, _read)  # in the order of `--help`


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(prog="rigproof", description="Acceptance test for a newly built NVIDIA GPU machine.", epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"rigproof {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, text: str, epilog: str = EPILOG) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, epilog=epilog)

    for add in _VERBS:
        add(verb)
    return top
