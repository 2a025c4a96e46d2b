"""What can be typed: the verbs of the command line, their options, and what each option takes. A verb is one function here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import time
from pathlib import Path
from typing import Any, NoReturn

from acceptance import __version__
from acceptance.reports.text import one_line
from acceptance.schedule import units

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
SCHEDULED = "Exit codes: 0 done, 3 systemd or the disk got in the way, 2 for a mistake in the call."
NIGHTLY = f"{EPILOG[:-1]}, 4 skipped: the machine is in use, and nothing was run."
BASELINE = (
    "Exit codes: 0 done, 3 a file cannot be read, believed or written, 2 for a mistake in the call or an unfit run."
)
HISTORY = "Exit codes: 0 done, 3 the history cannot be read or written, 2 for a mistake in the call."
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


def _time(text: str) -> time:
    if not re.fullmatch("([01]?[0-9]|2[0-3]):[0-5][0-9]", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time of day: give hours and minutes, such as 03:30")
    hour, _, minute = text.partition(":")
    return time(int(hour), int(minute))


def _number(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 9999")
    return int(text)


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


def _run_arguments(parser: argparse.ArgumentParser, profile: str = "accept") -> None:
    parser.add_argument(
        "--machine",
        metavar="FILE",
        type=_path,
        help="machine file: what should be in the machine, limits of its own, and what is accepted as it is",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=profile,
        help="how much is tested, and for how long: smoke, accept, nightly or soak (default: %(default)s)",
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


def _telling_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        type=_path,
        help="write the verdict and all figures as metrics for node-exporter's textfile collector (*.prom)",
    )
    parser.add_argument(
        "--on-fail",
        metavar="COMMAND",
        help="command for a verdict that is not PASS; it reads verdict.json from its standard input, and no shell starts it",
    )
    parser.add_argument(
        "--webhook", metavar="URL", help="address to which every verdict.json is posted; @FILE for a file that holds it"
    )
    parser.add_argument(
        "--webhook-secret-file",
        metavar="FILE",
        type=_path,
        help="file with the secret by which the receiver can tell who posted (HMAC-SHA256)",
    )


def nightly_arguments(parser: argparse.ArgumentParser) -> None:
    """What a nightly run can be told."""
    _run_arguments(parser, "nightly")
    parser.add_argument(
        "--most-skipped",
        metavar="N",
        type=_number,
        help="how many nights in a row on which the machine is in use are a failure (default: the profile's, 7)",
    )
    _telling_arguments(parser)


class _Nightly(argparse.Action):
    """Reads what a scheduled nightly run will be given as that run will, so that a mistake is found by day: words and what they say."""

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None) -> None:
        assert isinstance(values, list)
        parser = _Parser(prog="rigproof nightly", add_help=False)
        nightly_arguments(parser)
        namespace.nightly = parser.parse_args(values)
        namespace.words = tuple(values)


def _recorded_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN_DIR", type=_path, help="folder of the run, such as reports/latest")
    _language_argument(parser)


def _accept(verb: _Verb) -> None:
    _run_arguments(verb("accept", "test the machine and say whether it is fit"))


def _nightly(verb: _Verb) -> None:
    nightly_arguments(
        verb("nightly", "the same every night, held against the nights before, if nobody uses the machine", NIGHTLY)
    )


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
    parser = verb("report", "write junit.xml, report.html and verdict.json of a recorded run again")
    _recorded_arguments(parser)
    parser.add_argument(
        "--textfile", metavar="FILE", type=_path, help="write its metrics for node-exporter, too (*.prom)"
    )


def _compare(verb: _Verb) -> None:
    parser = verb("compare", "show recorded runs side by side, and which differences lie outside the noise", COMPARED)
    parser.add_argument("run_dirs", metavar="RUN_DIR", nargs="+", type=_path, help="folders of two runs or more")
    parser.add_argument("--page", metavar="FILE", type=_path, help="write the comparison as a page, too")
    parser.add_argument("--all", action="store_true", help="show what lies within the noise as well")
    _language_argument(parser)


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
        "--nights", metavar="N", type=_number, help="the last so many (default: 120; for --export all of them)"
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


def _schedule(verb: _Verb) -> None:
    parser = verb("schedule", "run nightly by systemd, every night: install, uninstall or show the units", SCHEDULED)
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, text in (
        ("install", "write the units and start the timer"),
        ("show", "show the units, and a line for cron; writes nothing"),
    ):
        asked = kinds.add_parser(name, help=text, description=text, epilog=SCHEDULED)
        asked.add_argument(
            "--at", metavar="TIME", type=_time, default=units.AT, help="time of day, such as 03:30, the default"
        )
        asked.add_argument("--run-as", metavar="USER", help="the user who runs it (default: root)")
        asked.add_argument(
            "nightly",
            metavar="ARGUMENT",
            nargs="*",
            action=_Nightly,
            help="after two dashes (--): what nightly is given",
        )
        _user_argument(asked)
    text = "stop the timer and remove the units"
    _user_argument(kinds.add_parser("uninstall", help=text, description=text, epilog=SCHEDULED))
    text = "what the failure unit starts: say how the night ended, and tell who was not told"
    failed = kinds.add_parser("failed", help=text, description=text, epilog=SCHEDULED)
    _user_argument(failed)
    _telling_arguments(failed)


def _user_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", action="store_true", help="the units of your own user, in place of the machine's")
    _language_argument(parser)


def _baseline(verb: _Verb) -> None:
    parser = verb(
        "baseline",
        "the machine's birth certificate: a whole run that passed, which later nights are held against",
        BASELINE,
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = "make a run that passed the baseline of this machine; it never makes a run pass, later nights are held to it"
    accept = what.add_parser("accept", help=text, description=text, epilog=BASELINE)
    accept.add_argument("run_dir", metavar="RUN", type=_path, help="folder of the run, such as reports/latest")
    accept.add_argument(
        "--replace", action="store_true", help="put it in the place of the one that is there, which is kept"
    )
    accept.add_argument(
        "--out",
        metavar="DIR",
        type=_path,
        help="folder of the runs and their history (default: the one that the run lies in)",
    )
    _language_argument(accept)
    text = "show the baseline of this machine"
    show = what.add_parser("show", help=text, description=text, epilog=BASELINE)
    show.add_argument(
        "--out",
        metavar="DIR",
        type=_path,
        default=Path("reports"),
        help="folder of the runs and their history (default: reports)",
    )
    show.add_argument("--json", action="store_true", help="the whole certificate, as JSON")
    _language_argument(show)


# In the order of `--help`.
_VERBS = (_accept, _nightly, _plan, _inventory, _judge, _report, _compare, _baseline, _history, _schedule, _read)


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
