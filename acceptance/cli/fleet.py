"""`rigproof fleet`: the verdicts of many machines."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
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
from acceptance.cli.fleet_report import NoFleet
from acceptance.core import regular_file
from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.fleet import comparison, due, locations, night, parquet, reader_file, verdicts
from acceptance.fleet.night import Judged, Row
from acceptance.fleet.report import FleetReport
from acceptance.fleet.views import sentences
from acceptance.history import noise
from acceptance.reports import report_terminal
from acceptance.reports.terminal import Terminal
from acceptance.run import signature
from acceptance.wording import words

EXIT = {"PASS": PASS, "FAIL": FAIL, "UNJUDGED": UNJUDGED}


_ENGINES = {"slurm": fleet_slurm, "kubernetes": fleet_kubernetes}


def share(text: str) -> float:
    """A share of machines, from 0 to 1."""
    plain = text.isascii() and text.replace(".", "", 1).isdigit()
    value = float(text) if plain else math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1, such as 0.05")
    return value


def hours(text: str) -> float:
    """Hours, from more than 0 to a year."""
    plain = text.isascii() and text.replace(".", "", 1).isdigit()
    value = float(text) if plain else math.nan
    if not 0 < value <= 8760:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of hours up to 8760 (a year)")
    return value


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

    Raises DueError, LocationsError, SignatureError where the signers cannot be read, NoDuckdb,
    NightFileError, and what `fleet_report.show`, `fleet_pairs.test_pairs` and the engines' `submit`
    raise.
    """
    language = closing.language_of(args)
    if args.what == "submit":
        return _submit(args, language)
    if args.what in ("accept", "failures"):
        if args.what == "failures" and args.signer is not None:
            _require_signers(args)
        screen = Terminal.on_stdout(language)
        verb = fleet_accept.accept if args.what == "accept" else fleet_accept.show_failures
        return closing.after_output(screen, verb(args, screen, language))
    if args.what == "pairs":
        screen = Terminal.on_stdout(language)
        code = fleet_pairs.test_pairs(args, screen, language)
        return closing.after_output(screen, code)
    if args.signer is not None:
        _require_signers(args)
    names = due.of_slurm() if args.due_slurm else due.read(args.due) if args.due else None
    places = {} if args.locations is None else locations.read(args.locations)
    if args.what == "report":
        screen = Terminal.on_stdout(language)
        told = fleet_report.show(args, names, places, screen, language)
        return closing.after_output(screen, exit_code(told, args.fail_on))
    if args.out is not None:
        parquet.require()
    now, fresh = datetime.now(UTC), timedelta(hours=args.fresh)
    # Kept nights have what came before; without them it is read again.
    earlier = timedelta(0) if args.out is not None else timedelta(days=comparison.NIGHTS - 1)
    found = verdicts.collect(args.folders, now, now - fresh - earlier, args.signer)
    kept: Mapping[str, Row] = {}
    with contextlib.suppress(parquet.NightFileError):  # raised again, when all is judged and shown
        kept = fleet_accept.kept_rows(args.out)  # a FAIL whose verdict was removed since
    judged = night.judge(found, names, now, fresh, signed=args.signer is not None, kept=kept)
    screen = Terminal.on_stdout(language)
    compared = None
    try:
        standings = (*judged.due, *judged.others)
        reasons = {one.machine: words.text(one.reason) for one in standings if one.reason}
        nights = night.tables(found, judged, reasons, now)
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
        for message in reader_file.write(args.folders, judged):
            screen.say(words.message(message, language), "yellow")
        report_terminal.show(sentences.collected(judged, compared, language), screen, language)
    return closing.after_output(screen, exit_code(judged, args.fail_on))


def _submit(args: argparse.Namespace, language: Language) -> int:
    """Submit the nodes of a fleet; returns the exit code."""
    engine = "slurm" if args.slurm is not None else "kubernetes"
    _refuse_other_options(args, engine)
    if args.signer is not None:
        _require_signers(args)
    screen = Terminal.on_stdout(language)
    if engine == "kubernetes":
        code = fleet_kubernetes.submit(args, screen, language)
    else:
        code, judged = fleet_slurm.submit(args, screen, language)
        if args.wait:
            report_terminal.show(sentences.collected(judged, None, language), screen, language)
            code = EXIT["FAIL"] if judged.verdict == "FAIL" else code or exit_code(judged)
    return closing.after_output(screen, code)


def _refuse_other_options(args: argparse.Namespace, engine: str) -> None:
    """Raise NoFleet where an option was given that only another engine has."""
    if engine == "kubernetes" and args.accept:
        raise NoFleet("arguments for accept stand in your kustomization: leave out what follows --")
    for name, module in _ENGINES.items():
        own = argparse.ArgumentParser(add_help=False)
        module.arguments(own)
        for option, default in vars(own.parse_args([])).items():
            if name != engine and getattr(args, option) != default:
                own_option = "--" + option.replace("_", "-")
                raise NoFleet(
                    f"{own_option} is an option of --{name}: leave it out with --{engine}"
                )


def _require_signers(args: argparse.Namespace) -> None:
    try:
        regular_file.read(args.signer, regular_file.SMALL_RECORD)
    except OSError as error:
        why = error.strerror
        raise signature.SignatureError("signers_unread", path=str(args.signer), why=why) from error


def exit_code(judged: Judged | FleetReport, fail_on: float | None = None) -> int:
    """0 PASS, 1 FAIL, 3 UNJUDGED.

    With `fail_on`, 1 where more than this share of the due machines did not pass, else 0; without
    any due machine nothing is judged, nor where what could not be read belongs to no machine.
    """
    unknown = any(trouble.machine is None for trouble in judged.troubles)
    if fail_on is None or not judged.due or unknown:
        return EXIT[judged.verdict]
    return int(judged.not_passed > fail_on)
