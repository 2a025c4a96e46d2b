"""`rigproof verify`: check a run's signature against its verdict and its evidence."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.core.exit_code import FAIL, UNJUDGED
from acceptance.run import signature


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof verify`."""
    options.run_dir(parser)
    parser.add_argument(
        "--signer",
        metavar="FILE",
        type=options.path,
        help="who may have signed it: an OpenSSH public key, or a file of allowed signers",
    )
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Verify a signed run.

    Returns 0 where the signature fits, 1 where it does not, 3 where there is none.
    """
    _, screen = closing.output(args)
    try:
        found = signature.verify(args.run_dir, args.signer)
    except signature.NotSigned as error:
        screen.say_messages([error.message], "yellow")
        return UNJUDGED
    except signature.SignatureError as error:
        screen.say_messages([error.message], "red")
        return FAIL
    screen.say_messages(signature.described(found))
    return closing.after_output(screen)
