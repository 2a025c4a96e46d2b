"""Options of a run (`accept`, `nightly`, `plan`), and how its plan is printed."""

from __future__ import annotations

import argparse

from acceptance.reports.terminal import Terminal
from acceptance.run.planning import PreparedRun
from acceptance.station.options import Options


def options(args: argparse.Namespace) -> Options:
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
    )


def show_plan(screen: Terminal, prepared: PreparedRun, *remarks: str | None, details: bool) -> None:
    """Show the topology, the plan, and the remarks that must be seen before the run."""
    screen.table(prepared.matrix().text())
    screen.plan(prepared.plan, prepared.profile_summary, details=details)
    for line in remarks:
        if line:
            screen.say(line, "bold yellow")
