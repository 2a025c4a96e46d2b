"""`rigproof fleet accept` and `rigproof fleet failures`: FAILs that do not stand any more."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acceptance.cli import options
from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Message, english
from acceptance.fleet import acceptances, comparison, night, parquet, reader_file, verdicts
from acceptance.fleet.night import History, Row, Standing
from acceptance.reports.terminal import Terminal
from acceptance.run import signature
from acceptance.wording import words
from acceptance.wording.errors import WordedUserError


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof fleet accept`."""
    parser.add_argument("name", metavar="NAME", help="the machine, by the name of its folder")
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=options.path,
        help="as for `fleet collect`: has a subfolder for each machine",
    )
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        required=True,
        help="why the FAIL does not count any more; every report shows it",
    )
    parser.add_argument(
        "--sign",
        metavar="KEY",
        type=options.path,
        help="sign it with this OpenSSH private key: `--signer` counts no unsigned one",
    )
    parser.add_argument(
        "--nights",
        metavar="DIR",
        type=options.path,
        help="accept also a FAIL that is only in the nights that `fleet collect --out DIR` kept",
    )
    options.language(parser)


def failures_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof fleet failures`."""
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=options.path,
        help="the folder of one machine, with a subfolder for each run",
    )
    parser.add_argument(
        "--signer",
        metavar="FILE",
        type=options.path,
        help="who may have signed: no unsigned verdict or acceptance ends a FAIL",
    )
    options.language(parser)


def accept(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Accept the FAILs of a machine that stand; returns 0.

    Raises UserError where there is nothing to accept or no reason, and WordedError.
    """
    if args.sign is not None:
        signature.require(args.sign)
    now = datetime.now(UTC)
    folders: list[Path] = args.folders
    places = [folder / args.name for folder in folders if (folder / args.name).is_dir()]
    if not places:
        where = ", ".join(map(str, folders))
        raise WordedUserError(
            english(
                "fleet_accept_unknown",
                "{machine} has no folder with verdicts in {folders}: give the name of a machine "
                "there",
            ),
            machine=args.name,
            folders=where,
        )
    found = verdicts.collect(folders, now, now)
    kept = kept_rows(args.nights)
    judged = night.judge(found, [args.name], now, timedelta(days=1), kept=kept)
    runs = failed_runs(judged.due[0], History.of(found, args.name, now, None, signed=False))
    if not runs:
        raise WordedUserError(
            english(
                "fleet_accept_no_fail",
                "{machine} has no FAIL that stands, so there is nothing to accept",
            ),
            machine=args.name,
        )
    path, made = acceptances.write(places[0], args.name, runs, args.reason, args.sign)
    screen.say_messages(map(made.of, runs))
    screen.path(str(path))
    screen.say_messages((reader_file.write_machine(one, now)[2] for one in places), "yellow")
    return PASS


def failed_runs(standing: Standing, history: History) -> list[str]:
    """The runs of everything that makes a machine FAIL, in doubt or not."""
    runs = {one.failed.run_id: None for one in history.open}
    doubted = (one for one in history.verdicts if history.word(one) == "FAIL")
    runs |= {one.run_id: None for one in doubted if one.run_id not in history.ended}
    if standing.failed is not None:
        runs[standing.failed.run_id] = None
    if standing.kept is not None and standing.kept.run_id is not None:
        runs[standing.kept.run_id] = None
    return list(runs)


def kept_rows(folder: Path | None) -> dict[str, Row]:
    """The last row of each machine in the kept nights. Raises WordedError."""
    if folder is None or not folder.is_dir():
        return {}
    found: dict[str, Row] = {}
    for _, table in sorted(parquet.read_last(folder, comparison.NIGHTS + 1).items()):
        for row in table.rows:
            if row.run_id is not None and not night.stands(found.get(row.machine, row), row):
                found[row.machine] = row
    return found


def show_failures(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Say which FAILs of machines stand and which do not, and write that for the readers.

    Returns 1 where one stands, 3 where something could not be read or written, else 0.
    """
    now, code = datetime.now(UTC), PASS
    for folder in args.folders:
        history, troubles, unwritten = reader_file.write_machine(folder, now, args.signer)
        for one in history.open:
            code = FAIL
            why = words.text(night.why_open(one), language)
            label = language.noted(f"FAIL {history.machine}", one.failed.run_id)
            screen.say(language("{label}: {text}", label=label, text=why), "red")
        for run, by in history.ended.items():
            acceptance = history.accepted.get(run)
            values = {"machine": history.machine, "run": run, "by": by}
            screen.say_messages(
                [
                    Message(
                        english("fleet_ended_by", "{machine}: the FAIL of {run} was ended by {by}"),
                        values,
                    )
                ]
            )
            if acceptance is not None:
                screen.say_messages([acceptance[1].of(run)], indent=2)
        if troubles or unwritten is not None:
            code = code or UNJUDGED
        screen.say_messages((*(one.message for one in troubles), unwritten), "yellow")
    return code
