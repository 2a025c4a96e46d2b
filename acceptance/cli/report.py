"""`rigproof report`: rebuild the reports of a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

from acceptance.cli import closing, options
from acceptance.journal import reader
from acceptance.journal import run as journal_run
from acceptance.journal.run_folder import START_AGAIN, write_whole
from acceptance.notify import notices, targets
from acceptance.run import lock, outputs, unfinished


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
    parser.add_argument(
        "--card",
        metavar="FILE",
        type=_picture,
        help="also write the top of the page as a picture to share (*.svg)",
    )


def _picture(text: str) -> Path:
    """The file of a picture."""
    found = options.path(text)
    if found.suffix != ".svg":
        raise argparse.ArgumentTypeError(
            f"{text} is no name of an SVG file, the only format of pictures: end it with .svg"
        )
    return found


def run(args: argparse.Namespace) -> int:
    """Rebuild the reports; returns the verdict's exit code.

    An unfinished run is closed first, as the next start would do.
    """
    language, screen = closing.output(args)
    textfile = targets.read(textfile=args.textfile).textfile
    found = reader.read(args.run_dir)
    if not unfinished.is_closed(found):
        with lock.MachineLock():  # whoever has the lock may be writing this run
            told = unfinished.close(args.run_dir)
        screen.say_messages([told], "yellow")
        found = reader.read(args.run_dir)
    run = journal_run.of_journal(found)
    outputs.write(run, language)
    if args.card is not None:
        write_whole(args.card, outputs.card(run, language), then=START_AGAIN)
        screen.path(str(args.card))
    if textfile is not None:
        notices.textfile(run, textfile)
    return closing.write_ocp(run, args.ocp, closing.show_verdict(screen, run), language)
