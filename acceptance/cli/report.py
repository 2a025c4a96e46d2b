"""`rigproof report`: rebuild the reports of a recorded run."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.journal import reader
from acceptance.journal import run as journal_run
from acceptance.notify import notices, targets
from acceptance.reports.terminal import Terminal
from acceptance.run import lock, outputs, unfinished
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof report`."""
    options.run_dir(parser)
    options.language(parser)
    parser.add_argument(
        "--textfile",
        metavar="FILE",
        type=options.path,
        help="also write metrics for node-exporter (*.prom)",
    )
    options.ocp(parser)


def run(args: argparse.Namespace) -> int:
    """Rebuild the reports; returns the verdict's exit code.

    An unfinished run is closed first, as the next start would do.
    """
    language = closing.language_of(args)
    textfile = targets.read(textfile=args.textfile).textfile
    screen = Terminal.on_stdout(language)
    found = reader.read(args.run_dir)
    if not unfinished.is_closed(found):
        with lock.MachineLock():  # whoever has the lock may be writing this run
            told = unfinished.close(args.run_dir)
        if told:
            screen.say(words.message(told, language), "yellow")
        found = reader.read(args.run_dir)
    run = journal_run.judge(found)
    outputs.write(run, language)
    if textfile is not None:
        notices.textfile(run, textfile)
    return closing.write_ocp(run, args.ocp, closing.show_verdict(screen, run), language)
