"""The parser of the command line: its verbs, each with its arguments.

A verb is a line of VERBS and a module of this package of the same name with two functions,
`arguments` and `run`. It is imported only when it is called, because no verb needs all of rigproof
and `rigproof --help` needs none.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from acceptance.cli import exit_codes
from acceptance.cli.options import Parser, add

# The help of each verb, in the order of `--help`.
VERBS = {
    "accept": "test the machine and say whether it is fit",
    "nightly": (
        "the same test every night, compared with earlier nights; skipped while somebody uses "
        "the machine"
    ),
    "plan": (
        "show what accept would do: checks, limits, time, and what it cannot detect; runs nothing"
    ),
    "inventory": "show the observed machine, or draft a machine file from it",
    "judge": "judge a recorded run again from its journal, and print the verdict",
    "report": "rebuild junit.xml, report.html and verdict.json of a recorded run",
    "replay": "play a finished run in the live view; reads the run and writes nothing",
    "sign": "sign a recorded run with an OpenSSH private key",
    "verify": "check a run's signature against its verdict and its evidence",
    "compare": "compare recorded runs, and mark differences beyond the noise",
    "baseline": (
        "record or show the machine's baseline: a full passed run that later nights are compared "
        "with"
    ),
    "history": "show what the runs of this machine measured from night to night",
    "capacity": "show what this machine can train, calculated from a run's measurements",
    "fleet": "submit tests for many machines, judge their verdicts, and keep each night",
    "schedule": "install, show or remove the systemd units that run nightly",
    "image": "build the container image, or carry it in a file to a machine without a network",
    "read": "read one recorded output of a tool; print outcome and readings as JSON",
    "completion": "print the completion of these commands for bash, zsh or fish",
}


class Verb(Protocol):
    """A module of this package that implements a verb."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments to the parser."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Run the verb; returns the exit code."""
        ...


class _Version(argparse.Action):
    """Prints the version, which a checkout has to ask git for, only where that is asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from acceptance.journal import provenance

        print(f"rigproof {provenance.version()}")
        parser.exit()


def verb(name: str) -> Verb:
    """The module of a verb in VERBS."""
    return cast(Verb, importlib.import_module(f"acceptance.cli.{name}"))


def parser(given: Sequence[str], *, whole: bool = False) -> argparse.ArgumentParser:
    """The parser of this command line: all verbs, and the arguments of the one that is called.

    `whole` has the arguments of all.
    """
    top = Parser(
        prog="rigproof",
        description="Acceptance test for a newly built NVIDIA GPU machine.",
        epilog=exit_codes.epilog(),
    )
    top.add_argument(
        "--version", nargs=0, action=_Version, help="print the version of rigproof and exit"
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    asked = next((word for word in given if not word.startswith("-")), None)
    for name, text in VERBS.items():
        own = add(verbs, name, text)
        if whole or name == asked:
            verb(name).arguments(own)
    return top
