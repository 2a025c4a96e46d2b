"""`rigproof image`: build the image, or carry it to a machine without a network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from acceptance.cli import options
from acceptance.process.deadline import Deadline
from acceptance.reports.text import clean, one_line
from acceptance.station.image import build, transfer

LONGEST_S = 3 * 3600.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof image`."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    save = options.add(
        what, "save", "write the image to a file; it is built first if it is missing", "image"
    )
    options.out(save, text="folder of the runs, for the log of a build (default: reports)")
    load = options.add(
        what, "load", "load the image of this version of rigproof from such a file", "image"
    )
    built = options.add(what, "build", "build the image if it is missing", "image")
    built.add_argument(
        "--base",
        metavar="REF",
        help="what it is built on (default: the pinned base, else Debian trixie from packages)",
    )
    options.out(built, text="folder of the runs, for the log of the build (default: reports)")
    for verb in (save, load):
        verb.add_argument("file", metavar="FILE", type=options.path, help="file of the image")


def run(args: argparse.Namespace) -> int:
    """Build, save or load the image, and print its name and id.

    Returns 0 or raises SetupError.
    """
    deadline = Deadline.after(LONGEST_S)
    if args.what == "build":
        log_dir = args.out / "image"
        image = build.build(log_dir=log_dir, say=_say, deadline=deadline, base=args.base)
    elif args.what == "save":
        image = transfer.save(Path(args.file), args.out / "image", _say, deadline)
    else:
        image = transfer.load(Path(args.file), deadline)
    print(one_line(f"{image.tag} {image.id}"))
    return 0


def _say(line: str) -> None:
    print(f"rigproof: {clean(line).expandtabs()}", file=sys.stderr, flush=True)
