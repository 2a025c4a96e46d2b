"""`rigproof image`: build the image, or carry it to a machine without a network."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from acceptance.cli import options
from acceptance.process.deadline import Deadline
from acceptance.reports.text import clean, one_line
from acceptance.station.image import build, inputs, recipe

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
    built.add_argument(
        "--tools-base",
        metavar="REF",
        help="what the upstream tools are built on, a Debian trixie (default: the pinned base)",
    )
    built.add_argument(
        "--context",
        metavar="DIR",
        type=options.path,
        help="only lay out the build context there, for a builder of your own",
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
        if args.context is not None:
            return _lay_out(build.wanted(args.base, args.tools_base), args.context)
        image = build.build(
            log_dir=args.out / "image",
            say=_say,
            deadline=deadline,
            base=args.base,
            tools_base=args.tools_base,
        )
        how = f"built in {image.seconds:.0f} s" if image.built else "the image is here"
        _say("\n".join((how, *(f"{key}={value}" for key, value in image.provenance().items()))))
    elif args.what == "save":
        image = build.save(Path(args.file), args.out / "image", _say, deadline)
    else:
        image = build.load(Path(args.file), deadline)
    print(one_line(f"{image.tag} {image.id}"))
    return 0


def _lay_out(want: build.WantedImage, folder: Path) -> int:
    inputs.lay_out(want.context, want.version, recipe.ca_bundle(os.environ, Path("/")), folder)
    dockerfile = f"{folder}/containers/Dockerfile"
    _say(f"the build context is in {folder}: `docker build -f {dockerfile} {folder}`")
    return 0


def _say(line: str) -> None:
    print(f"rigproof: {clean(line).expandtabs()}", file=sys.stderr, flush=True)
