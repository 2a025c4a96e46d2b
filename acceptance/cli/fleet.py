"""`rigproof fleet`: the verdicts of many machines."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from acceptance import resources
from acceptance.cli import (
    closing,
    fleet_accept,
    fleet_kubernetes,
    fleet_pairs,
    fleet_report,
    fleet_slurm,
    options,
)
from acceptance.core.exit_code import FAIL
from acceptance.core.language import Language
from acceptance.core.message import UserError
from acceptance.core.verdict import EXIT_CODES
from acceptance.fleet import comparison, due, night, parquet, reader_file
from acceptance.fleet.night import Judged, Row
from acceptance.fleet.report import FleetReport
from acceptance.fleet.views import sentences
from acceptance.history import noise
from acceptance.reports import report_terminal
from acceptance.reports.terminal import Terminal
from acceptance.run import signature
from acceptance.wording import words
from acceptance.wording.errors import WordedError

Locations = Mapping[str, Mapping[str, str]]
_ENGINES = {"slurm": fleet_slurm, "kubernetes": fleet_kubernetes}


share = options.numbers(float, 0, 1, "share from 0 to 1, such as 0.05")
hours = options.numbers(float, 1e-9, 8760, "number of hours up to 8760 (a year)")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof fleet`."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = "judge a night of many machines from their verdicts, and keep it"
    collect = options.add(what, "collect", text, "fleet")
    collect.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=options.path,
        help="has a subfolder for each machine, with its verdict.json (or .gz) or its runs",
    )
    _due(collect)
    _counts(collect)
    options.out(
        collect,
        None,
        "keep each night in a Parquet file in this folder (needs `pip install rigproof[fleet]`)",
    )
    _fail_on(collect)
    options.language(collect)
    text = "show a fleet: on the terminal, on a page, and for other programs"
    report = options.add(what, "report", text, "fleet")
    fleet_report.arguments(report)
    _due(report)
    _counts(report)
    _fail_on(report)
    options.language(report)
    text = "accept the FAIL of a machine by name, with a reason that every report shows"
    fleet_accept.arguments(options.add(what, "accept", text, "fleet"))
    text = "list which FAILs of a machine stand and what ended the others, for the node's readers"
    fleet_accept.failures_arguments(options.add(what, "failures", text, "fleet"))
    _submit_arguments(what)
    text = "test collectives between two nodes at a time, and name what is bad: node or link"
    fleet_pairs.arguments(options.add(what, "pairs", text, "fleet"))


def _submit_arguments(what: argparse._SubParsersAction[Any]) -> None:
    """Add `submit`, which each engine has options of its own for."""
    text = "submit a test for each node without a fresh PASS or FAIL, to Slurm or Kubernetes"
    submit = options.add(what, "submit", text, "fleet")
    submit.add_argument(
        "accept",
        metavar="ARGUMENT",
        nargs="*",
        help="after --: arguments for accept on the node (Slurm)",
    )
    engine = submit.add_mutually_exclusive_group(required=True)
    engine.add_argument(
        "--slurm",
        metavar="FOLDER",
        type=options.path,
        help=(
            "one exclusive job on each node; this shared folder gets a folder for each node, with "
            "its verdicts"
        ),
    )
    engine.add_argument(
        "--kubernetes",
        metavar="DIR",
        type=options.path,
        help=(
            "one Job on each node, by kubectl; DIR is your kustomization on top of "
            "deploy/kubernetes"
        ),
    )
    _counts(submit)
    for module in _ENGINES.values():
        module.arguments(submit)
    options.language(submit)


def _due(parser: argparse.ArgumentParser) -> None:
    """Add which machines are due, and where they are."""
    due_list = parser.add_mutually_exclusive_group()
    options.due(due_list, "those that have a folder")
    due_list.add_argument(
        "--due-slurm", action="store_true", help="the nodes that sinfo lists are due"
    )
    parser.add_argument(
        "--locations",
        metavar="FILE",
        type=options.path,
        help="CSV with the column `machine` and others, such as rack: what slow machines may share",
    )


def _counts(parser: argparse.ArgumentParser) -> None:
    """Add which verdicts count."""
    parser.add_argument(
        "--fresh",
        metavar="HOURS",
        type=hours,
        default=options.FRESH_HOURS,
        help="how long after its run began a verdict counts (default: 30)",
    )
    parser.add_argument(
        "--signer",
        metavar="FILE",
        type=options.path,
        help=(
            "who may have signed: an OpenSSH public key, or a file of allowed signers; an "
            "unsigned verdict then leaves its machine UNJUDGED"
        ),
    )


def _fail_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on",
        metavar="SHARE",
        type=share,
        help="exit with 1 only if more than this share of the due machines did not pass, else 0",
    )


def run(args: argparse.Namespace) -> int:
    """Collect, report, or have a fleet tested; returns the exit code of the verb's epilog.

    Raises WordedUserError, SignatureError where the signers cannot be read, WordedUserError,
    WordedError, and what `fleet_report.show`, `fleet_pairs.test_pairs` and the engines' `submit`
    raise.
    """
    verbs = {
        "collect": _collect,
        "report": _report,
        "submit": _submit,
        "accept": fleet_accept.accept,
        "failures": fleet_accept.show_failures,
        "pairs": fleet_pairs.test_pairs,
    }
    language, screen = closing.output(args)
    if args.what == "submit":
        _refuse_other_options(args)
    if getattr(args, "signer", None) is not None:
        signature.read_signers(args.signer)  # an error before anything else is read
    return closing.after_output(screen, verbs[args.what](args, screen, language))


def _due_machines(args: argparse.Namespace) -> tuple[Sequence[str] | None, Locations]:
    """The names of the machines that are due, None for all that are there, and their places."""
    names = due.of_slurm() if args.due_slurm else due.read(args.due) if args.due else None
    return names, {} if args.locations is None else due.read_locations(args.locations)


def _report(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Show a fleet in the views that were asked for; returns the exit code."""
    report = fleet_report.show(args, *_due_machines(args), screen, language)
    return exit_code(report, args.fail_on)


def _collect(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Judge a night and keep it; returns the exit code."""
    names, places = _due_machines(args)
    if args.out is not None:
        parquet.require()
    now = datetime.now(UTC)
    kept: Mapping[str, Row] = {}
    with contextlib.suppress(WordedError):  # raised again, when all is judged and shown
        kept = fleet_accept.kept_rows(args.out)  # a FAIL whose verdict was removed since
    # Kept nights have what came before; without them it is read again.
    count = 1 if args.out is not None else comparison.NIGHTS
    found, judged, nights = fleet_report.judge_folders(args, names, now, nights=count, kept=kept)
    compared = None
    try:
        if args.out is not None:
            texts = [words.message(one.message) for one in found.troubles]
            nights = night.with_troubles(nights, found, texts, now)
            for path in parquet.write(args.out, nights):
                screen.path(str(path))
            # The last may only name machines that are missing.
            nights = parquet.read_last(args.out, comparison.NIGHTS + 1)
        book = noise.read(resources.locate("noise.toml"))
        compared = comparison.compare(nights, book, places)
    finally:  # a full disk does not hide what was judged
        screen.say_messages(reader_file.write(args.folders, judged), "yellow")
        report_terminal.show(sentences.collected(judged, compared, language), screen, language)
    return exit_code(judged, args.fail_on)


def _submit(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Submit the nodes of a fleet; returns the exit code."""
    if args.slurm is None:
        return fleet_kubernetes.submit(args, screen, language)
    code, judged = fleet_slurm.submit(args, screen, language)
    if args.wait:
        report_terminal.show(sentences.collected(judged, None, language), screen, language)
        code = FAIL if judged.verdict == "FAIL" else code or exit_code(judged)
    return code


def _refuse_other_options(args: argparse.Namespace) -> None:
    """Raise UserError where an option was given that only another engine has."""
    engine = "slurm" if args.slurm is not None else "kubernetes"
    if engine == "kubernetes" and args.accept:
        raise UserError(
            "arguments for accept stand in your kustomization: leave out what follows --"
        )
    for name, module in _ENGINES.items():
        own = argparse.ArgumentParser(add_help=False)
        module.arguments(own)
        for option, default in vars(own.parse_args([])).items():
            if name != engine and getattr(args, option) != default:
                own_option = "--" + option.replace("_", "-")
                raise UserError(
                    f"{own_option} is an option of --{name}: leave it out with --{engine}"
                )


def exit_code(judged: Judged | FleetReport, fail_on: float | None = None) -> int:
    """0 PASS, 1 FAIL, 3 UNJUDGED.

    With `fail_on`, 1 where more than this share of the due machines did not pass, else 0; without
    any due machine nothing is judged, nor where what could not be read belongs to no machine.
    """
    unknown = any(trouble.machine is None for trouble in judged.troubles)
    if fail_on is None or not judged.due or unknown:
        return EXIT_CODES[judged.verdict]
    return int(judged.not_passed > fail_on)
