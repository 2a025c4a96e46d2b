"""`rigproof judge`: judge a recorded run again."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.journal import run as journal_run
from acceptance.reports.terminal import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof judge`."""
    options.run_dir(parser)
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Fold a recorded run again; returns its verdict's exit code."""
    screen = Terminal.on_stdout(closing.language_of(args))
    return closing.show_verdict(screen, journal_run.read(args.run_dir))
