"""The verbs that look at this machine: accept, nightly, plan, inventory."""

from __future__ import annotations

from acceptance.arguments import shared, values
from acceptance.arguments.form import EPILOG, Verb

NIGHTLY = f"{EPILOG[:-1]}, 4 skipped: the machine is in use, and nothing was run or the night was given up."


def accept(verb: Verb) -> None:
    """`rigproof accept`."""
    parser = verb("accept", "test the machine and say whether it is fit")
    shared.run(parser)
    shared.run_dir_file(parser)


def nightly(verb: Verb) -> None:
    """`rigproof nightly`."""
    shared.nightly(
        verb("nightly", "the same every night, held against the nights before, if nobody uses the machine", NIGHTLY)
    )


def plan(verb: Verb) -> None:
    """`rigproof plan`."""
    shared.run(verb("plan", "show what accept would do: checks, limits, time, and what it cannot detect; runs nothing"))


def inventory(verb: Verb) -> None:
    """`rigproof inventory`."""
    parser = verb("inventory", "show the machine as it is found, as JSON")
    parser.add_argument(
        "--write", metavar="FILE", type=values.path, help="draft a machine file from it, to be corrected by hand"
    )
