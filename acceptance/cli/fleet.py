"""`rigproof fleet`: the verdicts of many machines."""

from __future__ import annotations

import argparse
import math
from datetime import UTC, datetime, timedelta

from acceptance.cli import closing, fleet_kubernetes, options
from acceptance.core import regular_file
from acceptance.core.language import ENGLISH, Language
from acceptance.fleet import due, night, parquet, verdicts
from acceptance.fleet.night import Judged, Standing
from acceptance.reports.terminal import Terminal
from acceptance.run import signature
from acceptance.wording import words

_STYLE = {"PASS": "green", "FAIL": "red", "UNJUDGED": "yellow"}
EXIT = {"PASS": 0, "FAIL": 1, "UNJUDGED": 3}
FRESH_HOURS = 30.0  # a night a day, and some hours for one that began late
EPILOG = (
    "Exit codes: 0 every due machine has a fresh PASS, 1 a FAIL, 3 UNJUDGED, or something could "
    "not be read, 2 usage error."
)
SUBMIT_EPILOG = (
    "Exit codes: 0 each due node is submitted, is being tested or has a fresh verdict, 3 one could "
    "not be submitted, or the engine did not answer, 2 usage error."
)


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
    parser.epilog = EPILOG
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    text = "judge a night of many machines from their verdicts, and keep it"
    collect = options.add(what, "collect", text, EPILOG)
    collect.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=options.path,
        help="holds a folder for each machine with its verdict.json (or .gz), or with its runs",
    )
    listed = collect.add_mutually_exclusive_group()
    listed.add_argument(
        "--due",
        metavar="FILE",
        type=options.path,
        help="machines that are due, one on each line (default: those that have a folder)",
    )
    listed.add_argument(
        "--due-slurm", action="store_true", help="the nodes that sinfo lists are due"
    )
    _counts(collect)
    options.out(
        collect,
        None,
        "keep each night in a Parquet file in this folder (needs `pip install rigproof[fleet]`)",
    )
    collect.add_argument(
        "--fail-on",
        metavar="SHARE",
        type=share,
        help="exit with 1 only where more than this share of the due machines did not pass, else 0",
    )
    options.language(collect)
    text = "have each node tested that has no fresh verdict, by the engine that runs the fleet"
    submit = options.add(what, "submit", text, SUBMIT_EPILOG)
    engine = submit.add_mutually_exclusive_group(required=True)
    engine.add_argument(
        "--kubernetes",
        metavar="DIR",
        type=options.path,
        help="one Job on each node, by kubectl; DIR is your kustomization over deploy/kubernetes",
    )
    _counts(submit)
    fleet_kubernetes.arguments(submit)
    options.language(submit)


def _counts(parser: argparse.ArgumentParser) -> None:
    """Add which verdicts count."""
    parser.add_argument(
        "--fresh",
        metavar="HOURS",
        type=hours,
        default=FRESH_HOURS,
        help="how long after its run began a verdict counts (default: 30)",
    )
    parser.add_argument(
        "--signer",
        metavar="FILE",
        type=options.path,
        help=(
            "who may have signed: a public key of OpenSSH, or a file of allowed signers; an "
            "unsigned verdict then leaves its machine UNJUDGED"
        ),
    )


def run(args: argparse.Namespace) -> int:
    """Collect the verdicts of a fleet, or have it tested; returns the exit code of EPILOG.

    Raises DueError, ManifestError, KubernetesError, CommandError, SignatureError where the signers
    cannot be read, NoDuckdb, NightFileError.
    """
    language = closing.language_of(args)
    if args.what == "submit":
        return _submit(args, language)
    if args.out is not None:
        parquet.require()
    if args.signer is not None:
        _require_signers(args)
    names = due.of_slurm() if args.due_slurm else due.read(args.due) if args.due else None
    now, fresh = datetime.now(UTC), timedelta(hours=args.fresh)
    found = verdicts.collect(args.folders, now - fresh, args.signer)
    judged = night.judge(found, names, now, fresh, signed=args.signer is not None)
    screen = Terminal.on_stdout(language)
    try:
        if args.out is not None:
            standings = (*judged.due, *judged.others)
            reasons = {one.machine: words.text(one.reason) for one in standings if one.reason}
            for path in parquet.write(args.out, night.tables(found, judged, reasons, now)):
                screen.path(str(path))
    finally:  # a full disk does not hide what was judged
        show(judged, screen, language)
    closing.require_output(screen)
    return exit_code(judged, args.fail_on)


def _submit(args: argparse.Namespace, language: Language) -> int:
    """Submit the nodes of a fleet; returns the exit code."""
    if args.signer is not None:
        _require_signers(args)
    screen = Terminal.on_stdout(language)
    code = fleet_kubernetes.submit(args, screen, language)
    closing.require_output(screen)
    return code


def _require_signers(args: argparse.Namespace) -> None:
    try:
        regular_file.read(args.signer, regular_file.SMALL_RECORD)
    except OSError as error:
        why = error.strerror
        raise signature.SignatureError("signers_unread", path=str(args.signer), why=why) from error


def exit_code(judged: Judged, fail_on: float | None = None) -> int:
    """0 PASS, 1 FAIL, 3 UNJUDGED.

    With `fail_on`, 1 where more than this share of the due machines did not pass, else 0; without
    any due machine nothing is judged.
    """
    if fail_on is None or not judged.due:
        return EXIT[judged.verdict]
    return int(judged.not_passed > fail_on)


def show(judged: Judged, screen: Terminal, language: Language = ENGLISH) -> None:
    """Print each machine that did not pass, what could not be read, and the closing line."""
    for one in judged.due:
        if one.verdict != "PASS":
            screen.say(_line(one, language), _STYLE[one.verdict])
    # The first trouble of a machine is its reason, and stands above.
    told = {one.machine: one.reason for one in judged.due}
    for trouble in judged.troubles:
        if trouble.machine is None or told.get(trouble.machine) != trouble.message:
            screen.say(words.message(trouble.message, language), "yellow")
    for one in judged.others:
        screen.say(
            language(
                "not due: {machine}: {verdict}, which does not count",
                machine=one.machine,
                verdict=one.verdict,
            )
        )
    unsigned = [one.machine for one in judged.due if one.newest and one.newest.signer is None]
    if unsigned:
        screen.say(language("unsigned: {machines}", machines=", ".join(sorted(unsigned))))
    screen.say(closing_line(judged, language), f"bold {_STYLE[judged.verdict]}")


def _line(one: Standing, language: Language) -> str:
    reason = words.text(one.reason or "", language)
    run = f" ({one.newest.run_id})" if one.newest else ""
    return f"{one.verdict} {one.machine}: {reason}{run}"


def closing_line(judged: Judged, language: Language = ENGLISH) -> str:
    """The word on the fleet and the counts of its due machines."""
    due = language.ngettext("{n} machine due", "{n} machines due", len(judged.due))
    counts = ", ".join(f"{judged.count(word)} {word}" for word in ("PASS", "FAIL", "UNJUDGED"))
    missing = sum(one.missing for one in judged.due)
    if missing:
        counts += language(" ({number} without a fresh verdict)", number=missing)
    return f"{judged.verdict}: {due}: {counts}"
