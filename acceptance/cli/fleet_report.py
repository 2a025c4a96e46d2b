"""`rigproof fleet report`: a fleet on the terminal, on a page, and for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acceptance import resources
from acceptance.cli import options
from acceptance.core.language import Language
from acceptance.core.message import UserError
from acceptance.fleet import comparison, night, parquet, report, verdicts
from acceptance.fleet.night import Judged, NightTable, Row
from acceptance.fleet.report import FleetReport
from acceptance.fleet.views import junit, metrics, sentences, table
from acceptance.history import noise
from acceptance.journal import run_folder
from acceptance.notify import targets
from acceptance.reports import report_terminal
from acceptance.reports.page import report_page
from acceptance.reports.terminal import Terminal
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof fleet report`, but for those that say what counts."""
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="*",
        type=options.path,
        help="as for `fleet collect`: has a subfolder for each machine",
    )
    parser.add_argument(
        "--nights",
        metavar="DIR",
        type=options.path,
        help="report the last night that `fleet collect --out DIR` kept, instead of folders",
    )
    for name, text in (
        ("--page", "write a page that works offline"),
        ("--junit", "write JUnit, with a suite for each machine"),
        ("--csv", "write CSV, with a row for each machine"),
        ("--textfile", "write metrics for node-exporter's textfile collector (*.prom)"),
    ):
        parser.add_argument(name, metavar="FILE", type=options.path, help=text)


def show(
    args: argparse.Namespace,
    due: Collection[str] | None,
    locations: Mapping[str, Mapping[str, str]],
    screen: Terminal,
    language: Language,
) -> FleetReport:
    """Write and print the report, and return it.

    `due` names the machines that are due, None all that are there; `locations` is what the site
    tells of them. Raises UserError, WordedUserError, WordedError, and JournalError where a
    file cannot be written.
    """
    if bool(args.folders) == (args.nights is not None):
        raise UserError("give the FOLDER of the verdicts, or --nights with the kept nights")
    if args.nights is not None and args.signer is not None:
        raise UserError("--signer is for verdicts in folders: `fleet collect` holds nights to it")
    targets.read(args.textfile)
    now, fresh = datetime.now(UTC), timedelta(hours=args.fresh)
    nights: Mapping[str, NightTable]
    if args.nights is not None:
        nights = parquet.read_last(args.nights, comparison.NIGHTS + 1)
        if not nights:
            where = f"{args.nights} holds no night"
            raise UserError(f"{where}: give the folder of `rigproof fleet collect --out`")
        found = report.of_nights(nights, due, now, fresh)
    else:
        read, judged, nights = judge_folders(args, due, now, nights=comparison.NIGHTS)
        found = report.of_folders(read, judged, now)
    nights = report.with_runs(nights)
    book = noise.read(resources.locate("noise.toml"))
    found = report.with_earlier(found, nights, comparison.compare(nights, book, locations))
    try:
        for path in _write(args, found, language):
            screen.path(str(path))
    finally:  # a full disk does not hide what was judged
        report_terminal.show(sentences.report(found, language), screen, language)
    return found


def judge_folders(
    args: argparse.Namespace,
    due: Collection[str] | None,
    now: datetime,
    *,
    nights: int,
    kept: Mapping[str, Row] | None = None,
) -> tuple[verdicts.Collection, Judged, dict[str, NightTable]]:
    """The verdicts in the folders, what they say of the machines, and the tables of their nights.

    `nights` is how many nights are read; `kept` is as of `night.judge`.
    """
    fresh = timedelta(hours=args.fresh)
    since = now - fresh - timedelta(days=nights - 1)
    found = verdicts.collect(args.folders, now, since, args.signer)
    judged = night.judge(found, due, now, fresh, signed=args.signer is not None, kept=kept)
    standings = (*judged.due, *judged.others)
    reasons = {one.machine: words.text(one.reason) for one in standings if one.reason}
    return found, judged, night.tables(found, judged, reasons, now)


def _page(found: FleetReport, language: Language) -> bytes:
    drawn = sentences.report(found, language, page=True)
    return report_page.render(drawn, language, "acceptance.fleet.views").encode("utf-8")


def _write(args: argparse.Namespace, found: FleetReport, language: Language) -> list[Path]:
    """Write the files that were asked for; returns their paths."""
    views: tuple[tuple[Path | None, Callable[[], bytes], int | None], ...] = (
        (args.page, lambda: _page(found, language), None),
        (args.junit, lambda: junit.render(found), None),
        (args.csv, lambda: table.render(found), None),
        # node-exporter runs as another user, who must be able to read the file
        (args.textfile, lambda: metrics.render(found), 0o644),
    )
    written = []
    for path, content, mode in views:
        if path is not None:
            run_folder.write_whole(path, content(), then=run_folder.START_AGAIN, mode=mode)
            written.append(path)
    return written
