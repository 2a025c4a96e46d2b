"""The form of the command line: how a mistake is told, what exit codes mean, and how a verb gets its parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

from acceptance.reports.text import one_line

USAGE = 2  # the exit code of a mistake in the call
EPILOG = "Exit codes: 0 PASS, 1 FAIL, 3 UNJUDGED (an error, a skip that nobody waived, or stopped), 2 for a mistake in the call."

Verb = Callable[..., argparse.ArgumentParser]  # makes a verb's parser, of its name, what it does, and its exit codes


class Parser(argparse.ArgumentParser):
    """One sentence for a mistake, instead of a page of usage before it; `--help` has the page. An option is written out in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the call, and where its page is; exit code 2."""
        self.exit(USAGE, f"rigproof: {one_line(message)}: see `{self.prog} --help`\n")
