"""What can be typed: the verbs of the command line, their options, and what each option takes. A verb is one function of this package."""

from __future__ import annotations

import argparse

from acceptance import __version__
from acceptance.arguments import nights, recorded, testing
from acceptance.arguments.form import EPILOG, USAGE, Parser

__all__ = ["USAGE", "parser"]

VERBS = (  # in the order of `--help`
    testing.accept,
    testing.nightly,
    testing.plan,
    testing.inventory,
    recorded.judge,
    recorded.report,
    recorded.compare,
    nights.baseline,
    nights.history,
    nights.schedule,
    recorded.read,
)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(prog="rigproof", description="Acceptance test for a newly built NVIDIA GPU machine.", epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"rigproof {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, text: str, epilog: str = EPILOG) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, epilog=epilog)

    for add in VERBS:
        add(verb)
    return top
