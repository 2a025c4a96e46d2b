"""`make image`: builds the image, or says that it is here.

Exit 0, or 3 with one sentence when it is not available.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from acceptance.core.message import SetupError
from acceptance.process import command
from acceptance.process.deadline import Deadline
from acceptance.reports.text import clean, one_line
from acceptance.station.image import build, inputs, recipe


def _say(line: str) -> None:
    # It quotes output of the engine and of the build's programs, whose columns are kept.
    print(f"rigproof: {clean(line).expandtabs()}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Build, and print the tag on standard output."""
    parser = argparse.ArgumentParser(
        prog="python -m acceptance.station.image",
        description="Builds rigproof's image, or finds it.",
    )
    parser.add_argument(
        "--base",
        help="what the image is built on (default: pins.txt, else Debian trixie from packages)",
    )
    parser.add_argument(
        "--tools-base",
        help="what the upstream tools are built on, a Debian trixie (default: pins.txt)",
    )
    parser.add_argument(
        "--logs",
        type=Path,
        default=Path("reports/image"),
        help="where the build's log goes (%(default)s)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=120.0,
        help="after which the build is stopped (%(default)g)",
    )
    parser.add_argument(
        "--context",
        type=Path,
        metavar="DIR",
        help="only lay out the build context there, for a builder of your own",
    )
    chosen = parser.parse_args(arguments)
    try:
        if chosen.context:
            want = build.wanted(chosen.base, chosen.tools_base)
            inputs.lay_out(
                want.context,
                want.version,
                recipe.ca_bundle(os.environ, Path("/")),
                chosen.context,
            )
            _say(
                f"the build context is in {chosen.context}: `docker build -f "
                f"{chosen.context}/containers/Dockerfile {chosen.context}`"
            )
            return 0
        image = build.build(
            base=chosen.base,
            tools_base=chosen.tools_base,
            log_dir=chosen.logs,
            say=_say,
            deadline=Deadline.after(chosen.minutes * 60),
        )
    except (SetupError, command.CommandError, OSError) as error:
        _say(str(error))
        return 3
    how = f"built in {image.seconds:.0f} s" if image.built else "the image is here"
    _say(f"{how}: {image.tag} ({image.id})")
    for key, value in image.provenance().items():
        print(one_line(f"{key}={value}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
