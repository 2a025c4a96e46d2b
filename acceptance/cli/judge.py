"""`rigproof judge`: judge a recorded run again."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.reports.terminal import Terminal
from acceptance.run import outputs


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof judge`."""
    options.run_dir(parser)
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Fold a recorded run again; returns its verdict's exit code."""
    screen = Terminal.on_stdout(closing.language_of(args))
    return closing.show_verdict(screen, outputs.judge(args.run_dir), args.run_dir)
