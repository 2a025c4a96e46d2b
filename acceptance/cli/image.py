"""`rigproof image`: carry the image to a machine without a network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acceptance.cli import options
from acceptance.process.deadline import Deadline
from acceptance.reports.text import clean, one_line
from acceptance.station.image import transfer

LONGEST_S = 3 * 3600.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof image`."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    save = options.add(
        what, "save", "write the image to a file; it is built first if it is missing", "image"
    )
    options.out(save, text="folder of the runs, for the log of a build (default: reports)")
    load = options.add(
        what, "load", "take the image of this version of rigproof from such a file", "image"
    )
    for verb in (save, load):
        verb.add_argument("file", metavar="FILE", type=options.path, help="file of the image")


def run(args: argparse.Namespace) -> int:
    """Save or load the image, and print its name and id; returns 0 or raises ImageError."""
    deadline, file = Deadline.after(LONGEST_S), Path(args.file)
    if args.what == "save":
        image = transfer.save(file, args.out / "image", _say, deadline)
    else:
        image = transfer.load(file, deadline)
    print(one_line(f"{image.tag} {image.id}"))
    return 0


def _say(line: str) -> None:
    print(f"rigproof: {clean(line).expandtabs()}", file=sys.stderr, flush=True)
