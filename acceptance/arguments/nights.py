"""The verbs of a machine's years: baseline, history, schedule."""

from __future__ import annotations

import argparse
from pathlib import Path

from acceptance.arguments import shared, values
from acceptance.arguments.form import Parser, Verb
from acceptance.schedule.hour import AT

SCHEDULED = "Exit codes: 0 done, 3 systemd or the disk got in the way, 2 for a mistake in the call."
BASELINE = (
    "Exit codes: 0 done, 3 a file cannot be read, believed or written, 2 for a mistake in the call or an unfit run."
)
HISTORY = "Exit codes: 0 done, 3 the history cannot be read or written, 2 for a mistake in the call."


def baseline(verb: Verb) -> None:
    """`rigproof baseline`."""
    parser = verb(
        "baseline",
        "the machine's birth certificate: a whole run that passed, which later nights are held against",
        BASELINE,
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = "make a run that passed the baseline of this machine; it never makes a run pass, later nights are held to it"
    accept = what.add_parser("accept", help=text, description=text, epilog=BASELINE)
    accept.add_argument("run_dir", metavar="RUN", type=values.path, help="folder of the run, such as reports/latest")
    accept.add_argument(
        "--replace", action="store_true", help="put it in the place of the one that is there, which is kept"
    )
    accept.add_argument(
        "--out",
        metavar="DIR",
        type=values.path,
        help="folder of the runs and their history (default: the one that the run lies in)",
    )
    shared.language(accept)
    text = "show the baseline of this machine"
    show = what.add_parser("show", help=text, description=text, epilog=BASELINE)
    show.add_argument(
        "--out",
        metavar="DIR",
        type=values.path,
        default=Path("reports"),
        help="folder of the runs and their history (default: reports)",
    )
    show.add_argument("--json", action="store_true", help="the whole certificate, as JSON")
    shared.language(show)


def history(verb: Verb) -> None:
    """`rigproof history`."""
    parser = verb("history", "show what the runs of this machine measured from night to night", HISTORY)
    parser.add_argument(
        "measurement", metavar="MEASUREMENT", nargs="?", help="one measurement by name or shell pattern: gemm_bf16*"
    )
    parser.add_argument("--component", metavar="C", help="one component by name or shell pattern: gpu0")
    shared.out(parser)
    parser.add_argument("--machine-id", metavar="ID", help="another machine whose history is there (default: this one)")
    parser.add_argument(
        "--nights", metavar="N", type=values.count, help="the last so many (default: 120; for --export all of them)"
    )
    parser.add_argument("--page", metavar="FILE", type=values.path, help="write it as a page with plots, too")
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
        "--keep-days", metavar="N", type=values.amount, help="with --prune: runs and values of so many days stay"
    )
    parser.add_argument(
        "--keep-gib", metavar="N", type=values.amount, help="with --prune: the newest runs of so many GiB stay"
    )
    shared.language(parser)


class _Nightly(argparse.Action):
    """Reads what a scheduled nightly run will be given as that run will, so that a mistake is found by day: words and what they say."""

    def __call__(self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None) -> None:
        assert isinstance(values, list)
        parser = Parser(prog="rigproof nightly", add_help=False)
        shared.nightly(parser)
        namespace.nightly = parser.parse_args(values)
        namespace.words = tuple(values)


def _user_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", action="store_true", help="the units of your own user, in place of the machine's")
    shared.language(parser)


def schedule(verb: Verb) -> None:
    """`rigproof schedule`."""
    parser = verb("schedule", "run nightly by systemd, every night: install, uninstall or show the units", SCHEDULED)
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, text in (
        ("install", "write the units and start the timer"),
        ("show", "show the units, and a line for cron; writes nothing"),
    ):
        asked = kinds.add_parser(name, help=text, description=text, epilog=SCHEDULED)
        asked.add_argument(
            "--at",
            metavar="TIME",
            type=values.time_of_day,
            default=AT,
            help=f"time of day (default: {AT:%H:%M})",
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
    shared.out(failed)
    shared.telling(failed)
