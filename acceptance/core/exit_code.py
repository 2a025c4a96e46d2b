"""The exit codes of rigproof; `acceptance.cli.exit_codes` says what each means for which verb."""

from __future__ import annotations

PASS = 0
FAIL = 1
USAGE = 2  # as argparse and most programs have it
UNJUDGED = 3  # also an error of rigproof's own and Ctrl-C: neither says that the machine is bad
SKIPPED = 4  # a night on which the machine was in use: no failure
