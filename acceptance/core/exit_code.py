"""The exit codes of rigproof; `acceptance.cli.exit_codes` says what each means for which verb."""

from __future__ import annotations

from typing import Final

PASS: Final = 0
FAIL: Final = 1
USAGE = 2  # as argparse and most programs have it
UNJUDGED: Final = 3  # also rigproof's own errors and Ctrl-C: neither says the machine is bad
SKIPPED = 4  # a night on which the machine was in use: no failure
