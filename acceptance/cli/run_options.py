"""The arguments of a run (`accept`, `nightly`, `plan`), and how its plan is printed."""

from __future__ import annotations

import argparse

from acceptance.cli import options
from acceptance.core.message import Text
from acceptance.reports.terminal import Terminal
from acceptance.run.planning import PreparedRun
from acceptance.station.options import Options


def arguments(parser: argparse.ArgumentParser, profile: str) -> None:
    """Add the arguments of a run, which has the profile unless another is named."""
    parser.add_argument(
        "--machine",
        metavar="FILE",
        type=options.path,
        help="machine file: expected parts, own limits, and waivers",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        default=profile,
        help=(
            "how much is tested, and for how long: smoke, accept, nightly, train or soak (default: "
            "%(default)s)"
        ),
    )
    parser.add_argument(
        "--station",
        choices=("auto", "docker", "host"),
        default="auto",
        help=(
            "where loads run: in a container, or in place (default: a container if an "
            "engine is running)"
        ),
    )
    parser.add_argument(
        "--image",
        metavar="REF",
        help="use this local image instead of rigproof's own (such a run never passes)",
    )
    options.sheets(parser)
    options.out(parser)
    parser.add_argument(
        "--only",
        metavar="EXPR",
        type=options.patterns,
        default=(),
        help=(
            "checks by id, subject or shell pattern, with commas: cpu,memory.* (a run of some "
            "checks is partial, which is no acceptance)"
        ),
    )
    parser.add_argument(
        "--gpus",
        metavar="LIST",
        type=options.gpus,
        default=(),
        help=(
            "GPUs to test, by index or UUID, with commas (default: all; a run of named GPUs is "
            "partial, which is no acceptance)"
        ),
    )
    parser.add_argument(
        "--burn",
        metavar="SECONDS",
        type=options.seconds,
        help=(
            "seconds of the whole-machine burn instead of the profile's; also caps the burns of "
            "single parts (with fewer than the profile's the run is partial, which is no "
            "acceptance)"
        ),
    )
    parser.add_argument(
        "--fail-fast",
        action="store_true",
        help="stop at the first check that fails (default: test everything else anyway)",
    )
    parser.add_argument(
        "--checks",
        metavar="DIR",
        type=options.path,
        help=(
            "also run the checks of your own in this folder: pytest files, each with its TOML file "
            "of measurements and limits"
        ),
    )
    options.language(parser)


def read(args: argparse.Namespace) -> Options:
    """The options of a run, from the command line."""
    return Options(
        args.machine,
        args.profile,
        args.station,
        args.image,
        args.out,
        args.only,
        args.burn,
        args.gpus,
        fail_fast=args.fail_fast,
        sheets=args.sheets,
        checks=args.checks,
    )


def show_plan(
    screen: Terminal, prepared: PreparedRun, *remarks: Text | None, details: bool
) -> None:
    """Show the topology, the plan, and the remarks that must be seen before the run."""
    if not prepared.options.as_declared:  # no file declares where a card sits
        screen.table(prepared.matrix().text())
    screen.plan(
        prepared.plan, prepared.profile_summary, details=details, undeclared=prepared.undeclared
    )
    if details and prepared.limits is not None:
        screen.limits(prepared.limits)
    screen.say_messages(remarks, "bold yellow")
