"""`rigproof sign`: sign a recorded run."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.journal import run as journal_run
from acceptance.run import signature


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof sign`."""
    options.run_dir(parser)
    parser.add_argument(
        "--key",
        metavar="KEY",
        type=options.path,
        required=True,
        help="OpenSSH private key: without a passphrase, or in a running ssh-agent",
    )
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Sign a run and show what was signed; returns 0 or raises."""
    _, screen = closing.output(args)
    made = signature.sign(journal_run.read(args.run_dir), args.key)
    screen.say_messages(signature.described(signature.verify(args.run_dir)))
    screen.path(str(made))
    return closing.after_output(screen)
