"""`rigproof compare`: compare recorded runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from acceptance import resources
from acceptance.cli import closing, options
from acceptance.core.exit_code import FAIL, PASS, UNJUDGED
from acceptance.core.language import ENGLISH, Language
from acceptance.core.message import UserError, english
from acceptance.history import comparison, noise
from acceptance.history.comparison import ComparedRun, Comparison
from acceptance.journal import run as journal_run
from acceptance.journal import run_folder
from acceptance.reports import (
    comparison_report,
    report_terminal,
)
from acceptance.reports.page import report_page
from acceptance.reports.terminal import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof compare`."""
    parser.add_argument(
        "run_dirs",
        metavar="RUN",
        nargs="+",
        type=options.path,
        help="two or more run folders",
    )
    parser.add_argument(
        "--page", metavar="FILE", type=options.path, help="also write the comparison as a page"
    )
    parser.add_argument("--all", action="store_true", help="also show differences within the noise")
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Show the runs; returns the exit code.

    3 if the evidence of one is incomplete, 1 if one is worse than the first beyond the noise, 3 if
    one measured nothing that the first measured too, else 0.
    """
    language = closing.language_of(args)
    screen = Terminal.on_stdout(language)
    found = show(args.run_dirs, screen, args.page, everything=args.all, language=language)
    code = UNJUDGED if found.proves_nothing else FAIL if found.worse else PASS
    return closing.after_output(screen, code)


MAX_RUNS = 26  # runs: each gets a letter


def _comparable(folders: Sequence[Path]) -> None:
    """Raise UserError for fewer than two runs, more than MAX_RUNS, or one run given twice."""
    if not 2 <= len(folders) <= MAX_RUNS:
        given = "1 run was" if len(folders) == 1 else f"{len(folders)} runs were"
        raise UserError(f"{given} given: give the folders of 2 to {MAX_RUNS} runs")
    known: dict[Path, Path] = {}
    for folder in folders:
        if same := known.get(folder.resolve()):
            raise UserError(
                f"{folder} and {same} are the same run: give another one to compare it with"
            )
        known[folder.resolve()] = folder


def _run(folder: Path) -> ComparedRun:
    """Read one run; the error of one that cannot be judged names its folder."""
    try:
        return comparison.run_of(journal_run.read(folder), str(folder))
    except journal_run.UnreadableRun as error:
        raise journal_run.UnreadableRun(
            english("run_left_out", "{run}: {why}: leave it out"),
            run=str(folder),
            why=error.message,
        ) from error


def show(
    folders: Sequence[Path],
    screen: Terminal,
    page: Path | None,
    *,
    everything: bool = False,
    language: Language = ENGLISH,
) -> Comparison:
    """Compare runs, print the comparison, and write it to `page` if one is given.

    `everything` also shows differences within the noise. Raises UserError, JournalError
    and SetupError.
    """
    _comparable(folders)
    found = comparison.compare(
        [_run(folder) for folder in folders],
        noise.read_rules(
            resources.locate("drift.toml"), noise.read(resources.locate("noise.toml"))
        ),
    )
    short = comparison_report.report(found, language, everything=everything)
    report_terminal.show(short, screen, language)
    if page is not None:
        whole = report_page.render(comparison_report.report(found, language), language)
        run_folder.write_whole(page, whole.encode("utf-8"), then=run_folder.START_AGAIN)
        screen.path(str(page))
    return found
