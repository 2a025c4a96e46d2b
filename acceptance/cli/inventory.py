"""`rigproof inventory`: print the observed machine as JSON, or draft a machine file from it."""

from __future__ import annotations

import argparse
import sys

from acceptance.cli import options
from acceptance.observe import draft
from acceptance.observe import inventory as observed
from acceptance.reports import plain_json
from acceptance.reports.text import one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof inventory`."""
    parser.add_argument(
        "--write",
        metavar="FILE",
        type=options.path,
        help="draft a machine file from the observed machine; correct it by hand",
    )


def run(args: argparse.Namespace) -> int:
    """Print the observed machine, or draft a machine file from it."""
    found = observed.observe()
    if args.write is None:
        sys.stdout.buffer.write(plain_json.render(found, sys.stdout.encoding))
    else:
        draft.write(found, args.write)
        text = "drafted from what was found; correct it by hand, then run"
        line = f"{args.write}: {text} `rigproof accept --machine {args.write}`"
        sys.stdout.write(f"{one_line(line, 10_000)}\n")
    return 0
