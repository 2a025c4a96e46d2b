"""`rigproof accept`: test the machine, from the lock to the verdict."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from acceptance.cli import closing, machine_test, run_options
from acceptance.cli import options as cli_options
from acceptance.core.exit_code import UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Message, english
from acceptance.journal.run import Run
from acceptance.run import signature
from acceptance.wording import words
from acceptance.wording.errors import WordedError, said


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof accept`."""
    machine_test.arguments(parser, "accept")
    parser.add_argument(
        "--sign",
        metavar="KEY",
        type=cli_options.path,
        help=(
            "sign evidence and verdict with this OpenSSH private key (`rigproof verify` checks it)"
        ),
    )
    cli_options.ocp(parser)


def run(args: argparse.Namespace) -> int:
    """Test the machine; returns the verdict's exit code.

    A pass that could not be signed as asked is no 0.
    """
    machine_test.forget(args.run_dir_file)
    options = replace(run_options.read(args), run_dir_file=args.run_dir_file)
    language, screen = closing.output(args)
    if args.sign is not None:
        signature.require(args.sign)
    found = machine_test.run_test(options, screen, language)
    code = closing.show_verdict(screen, found)
    code = closing.write_ocp(found, args.ocp, code, language)
    if args.sign is not None and not _signed(found, args.sign, language):
        return code or UNJUDGED
    return code


def _signed(run: Run, key: Path, language: Language) -> bool:
    """Sign a run; returns whether it is signed, and says why not."""
    try:
        signature.sign(run, key)
    except (WordedError, OSError) as error:
        told = {"why": said(error), "run": str(run.folder), "key": str(key)}
        cli_options.say_error(
            words.message(
                Message(
                    english(
                        "run_not_signed",
                        "the run is not signed: {why}; once that is fixed, `rigproof sign {run} "
                        "--key {key}` signs it",
                    ),
                    told,
                ),
                language,
            )
        )
        return False
    return True
