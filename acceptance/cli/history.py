"""`rigproof history`: what the runs of a machine measured from night to night."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from acceptance import resources
from acceptance.cli import closing, options
from acceptance.core.language import Language
from acceptance.core.limit import GIB
from acceptance.core.message import Message, UserError, english, plural
from acceptance.core.nearest import nearest
from acceptance.history import baseline_file, folder, night_file, nights, noise
from acceptance.history import export as history_export
from acceptance.history.baseline_file import Baseline
from acceptance.history.errors import HistoryError
from acceptance.history.night import Night
from acceptance.history.trend import TrendSeries
from acceptance.journal import clock, reader, run_folder
from acceptance.journal import run as journal_run
from acceptance.journal.segment import JournalError
from acceptance.reports import explanation, report_terminal, trend_report
from acceptance.reports.terminal import Terminal
from acceptance.reports.text import ASCII
from acceptance.run import lock
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof history`."""
    parser.add_argument(
        "measurement",
        metavar="MEASUREMENT",
        nargs="?",
        help=(
            "one measurement by name or shell pattern: gemm_bf16*; or `convert`: read the history "
            "of an older rigproof once, and write it as this one keeps it"
        ),
    )
    parser.add_argument(
        "--component", metavar="C", help="one component by name or shell pattern: gpu0"
    )
    options.out(parser)
    parser.add_argument(
        "--machine-id",
        metavar="ID",
        help="show another machine of this folder (default: this machine)",
    )
    parser.add_argument(
        "--nights",
        metavar="N",
        type=options.count,
        help="number of nights to show (default: 120; all with --export)",
    )
    parser.add_argument(
        "--page", metavar="FILE", type=options.path, help="also write a page with plots"
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--export",
        choices=("csv", "jsonl"),
        help="write every value to standard output, for programs",
    )
    action.add_argument(
        "--prune",
        action="store_true",
        help=(
            "remove old runs and their telemetry; never the baseline, the newest run, or what is "
            "not a run of this machine"
        ),
    )
    parser.add_argument(
        "--keep-days",
        metavar="N",
        type=options.amount,
        help="with --prune: keep runs and values of the last N days",
    )
    parser.add_argument(
        "--keep-gib",
        metavar="N",
        type=options.amount,
        help="with --prune: keep the newest runs up to N GiB",
    )
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Show, export, prune or convert the history; returns 0 or raises."""
    language = closing.language_of(args)
    screen = Terminal.on_stdout(language)
    if not args.prune and (args.keep_days is not None or args.keep_gib is not None):
        raise UserError(
            "--keep-days and --keep-gib say what stays when something is removed: give "
            "--prune as well"
        )
    convert = args.measurement == CONVERT
    if convert and (args.component or args.nights or args.page or args.export or args.prune):
        raise UserError("`history convert` takes --out and --machine-id alone: leave the rest away")
    if args.page and (args.export or args.prune):
        raise UserError("--page goes with looking at the history: leave --export and --prune away")
    if args.prune and (args.measurement or args.component or args.nights):
        raise UserError(
            "--prune goes by whole runs: leave MEASUREMENT, --component and --nights away"
        )
    histories = HistoryCommand(args, screen, language)
    if convert:
        histories.convert()
    elif args.export:
        histories.export()
    elif args.prune:
        histories.prune()
    else:
        histories.show()
    return closing.after_output(screen)


CONVERT = "convert"  # in place of a measurement; goes with the next release
_NEAR = 5  # similar names offered for an unknown one


class HistoryCommand:
    """Actions on the history of one machine in one output folder."""

    def __init__(self, asked: argparse.Namespace, screen: Terminal, language: Language) -> None:
        self._asked = asked
        self._screen = screen
        self._language = language
        self._own = clock.machine_id(Path("/"))
        self._id = asked.machine_id or self._own

    def show(self) -> None:
        """Print the nights, and write them to a page if one is wanted.

        Raises UserError, HistoryError, SetupError, or JournalError for a page that cannot be
        written.
        """
        asked = self._asked
        baseline = self._baseline()
        recorded = self._nights()
        found = history_export.trend_report(
            recorded,
            asked.out,
            self._id,
            noise.read(resources.locate("noise.toml")),
            measurement=asked.measurement,
            component=asked.component,
            last=asked.nights or history_export.NIGHTS,
            baseline_value=baseline_value_of(baseline),
            baseline=baseline.certificate.machine.run_id if baseline else None,
        )
        if not found.rows and (asked.measurement or asked.component):
            raise self._unknown(recorded)
        if found.shown:
            found = replace(found, headline=self._headline(found.shown[-1].run_id))
        one = asked.measurement is not None
        plain = self._screen.signs is ASCII
        report = trend_report.report(found, self._language, one=one, plain=plain, drawn=False)
        report_terminal.show(report, self._screen, self._language)
        if asked.page is not None:
            # importing the templates takes time, and only this branch needs them
            from acceptance.reports.page import report_page

            drawn = trend_report.report(found, self._language, one=one)
            content = report_page.render(drawn, self._language).encode("utf-8")
            run_folder.write_whole(asked.page, content, then=run_folder.START_AGAIN)
            self._screen.path(str(asked.page))

    def _headline(self, run_id: str) -> str | None:
        """Why the last run did not pass; None where its folder has gone or cannot be read."""
        try:
            first = explanation.of_run(journal_run.read(self._asked.out / run_id), self._language)
        except (JournalError, OSError):
            return None
        return None if first is None else first.line(self._language)

    def export(self) -> None:
        """Write every value to standard output.

        Raises UserError or HistoryError, and OSError when standard output is closed.
        """
        asked = self._asked
        for line in history_export.export_rows(
            self._nights(say=False),
            asked.export,
            asked.measurement,
            asked.component,
            asked.nights,
        ):
            sys.stdout.buffer.write(line)

    def convert(self) -> None:
        """Convert the history of an older rigproof. Raises UserError or HistoryError."""
        from acceptance.history import convert  # nobody else needs it

        self._present()
        count, notices = convert.convert(self._asked.out, self._id)
        done = Message(
            english("history_converted", "the history is converted, with {nights}"),
            {"nights": Message(plural("nights", "{n} night", "{n} nights"), {"n": count})},
        )
        nothing = Message(
            english(
                "nothing_to_convert",
                "{path}: holds no history of an older rigproof; there is nothing to convert",
            ),
            {"path": str(self._asked.out)},
        )
        for one in (done if count else nothing, *notices):
            self._screen.say(words.message(one, self._language))

    def prune(self) -> None:
        """Remove old runs and values, and report what was removed.

        Raises UserError, also for another machine, whose runs cannot be locked from here. Raises
        HistoryError, MachineBusy or UserError. Raises HistoryError too: the run of an
        unreadable baseline could not be spared.
        """
        keep_days, keep_gib = self._asked.keep_days, self._asked.keep_gib
        if keep_days is None and keep_gib is None:
            raise UserError(
                "--prune needs --keep-days or --keep-gib, or both: say how much is to stay"
            )
        if self._id != self._own:
            raise UserError(
                f"the history of {self._id} is another machine's: start this on that machine"
            )
        with lock.MachineLock():  # no run of this machine is written meanwhile
            baseline = baseline_file.read(self._asked.out, self._id)
            found = nights.prune(
                self._nights(),
                self._asked.out,
                self._id,
                today=time.time() / 86400.0,
                keep_days=keep_days,
                keep_bytes=int(keep_gib * GIB) if keep_gib is not None else None,
                never=[baseline.certificate.machine.run_id] if baseline else [],
            )
        for line in trend_report.prune_lines(
            found.folders, found.nights, found.left, self._language
        ):
            self._screen.say(line)

    def _present(self) -> None:
        """Raise UserError if the machine has neither a history nor a run here."""
        out = self._asked.out
        known = (folder.database(out, self._id), night_file.folder(out, self._id))
        if any(place.exists() for place in known):
            return
        others = history_export.other_machines(out, self._id)
        if self._id != self._own or not any(out.glob(f"*/{reader.SUPERVISOR}")):
            there = (
                f" (there is one of {', '.join(others)}: --machine-id shows it)" if others else ""
            )
            raise UserError(
                f"{out}: holds no history of {self._id}{there}: give the folder of its runs "
                "with --out"
            )

    def _nights(self, *, say: bool = True) -> tuple[Night, ...]:
        """The nights of the machine.

        Runs of this machine that are not recorded yet are added first, if that can be written. Any
        other history is read as it is. What cannot be read is reported; without `say` that is on
        standard error.
        """
        self._present()
        out = self._asked.out
        place = night_file.folder(out, self._id)
        if self._id != self._own or not os.access(place if place.exists() else out, os.W_OK):
            found, unread = nights.read(out, self._id)
            notices = nights.unread_notices(unread)
        else:
            found, notices, _ = nights.open_history(out, self._id)
        if notices:
            text = words.message(nights.in_one(notices), self._language)
            self._screen.say(text, "yellow") if say else print(f"rigproof: {text}", file=sys.stderr)
        return found

    def _baseline(self) -> Baseline | None:
        try:
            return baseline_file.read(self._asked.out, self._id)
        except HistoryError as error:
            self._screen.say(words.message(error.message, self._language), "yellow")
            return None

    def _unknown(self, recorded: Sequence[Night]) -> UserError:
        known = {
            name
            for night in recorded
            for series in night.series
            for name in (series.measurement, str(series.component))
        }
        asked = [
            name
            for name in (self._asked.measurement, self._asked.component)
            if name and name not in known
        ]
        near = [name for one in asked for name in nearest(one, known, _NEAR)]
        there = f" (there is {', '.join(near)})" if near else ""
        text = " on ".join(
            name for name in (self._asked.measurement, self._asked.component) if name
        )
        return UserError(
            f"no night has a value of {text}{there}: `rigproof history` lists all that there are"
        )


def baseline_value_of(baseline: Baseline | None) -> Callable[[TrendSeries], float | None]:
    """A function from a trend to its baseline value, None if that is of another part."""
    figures = (
        {}
        if baseline is None
        else {
            (one.check, one.measurement, one.component, one.unit): one
            for one in baseline.certificate.figures
        }
    )

    def born(series: TrendSeries) -> float | None:
        one = figures.get((series.check, series.measurement, series.component, series.unit))
        if one is None or (one.serial and series.serial and one.serial != series.serial):
            return None
        return one.value

    return born
