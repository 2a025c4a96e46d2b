"""`rigproof plan`: show what `accept` would do; runs nothing."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from acceptance.cli import closing, options, run_options
from acceptance.core.message import Text
from acceptance.expect.collected import PlanError
from acceptance.machine import gpu_selection
from acceptance.run import missing_programs, planning
from acceptance.run.planning import PreparedRun
from acceptance.run.recall import HistoryRecall
from acceptance.station import preflight
from acceptance.station.options import Options


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof plan`."""
    run_options.arguments(parser, "accept")
    parser.add_argument(
        "--as",
        dest="declared",
        metavar="FILE",
        type=options.path,
        help=(
            "plan for the machine that this machine file declares, not for this one: before it is "
            "bought, or on another machine"
        ),
    )


def run(args: argparse.Namespace) -> int:
    """Show the plan. Raises OSError when standard output is closed."""
    asked = run_options.read(args)
    _, screen = closing.output(args)
    if args.declared is not None:
        if args.machine is not None:
            raise PlanError("give --as or --machine, not both: --as plans for the file's machine")
        asked = replace(asked, machine_file=args.declared, as_declared=True)
        prepared = planning.prepare(asked)
        remarks: tuple[Text | None, ...] = ()
    else:
        prepared, remarks = _here(asked)
    screen.say_messages(prepared.alarm, "bold red")
    notes = (note.text for note in prepared.notes)
    run_options.show_plan(screen, prepared, *remarks[:2], *notes, *remarks[2:], details=True)
    return closing.after_output(screen)


def _here(asked: Options) -> tuple[PreparedRun, tuple[Text | None, ...]]:
    """The plan for this machine, with its usual times, and remarks on how it would run here."""
    hidden = gpu_selection.refuse_outside(asked.gpus, os.environ)
    prepared = planning.prepare(asked)
    notice = preflight.station_notice(asked.station, asked.image)
    in_place = asked.station == "host" or notice is not None
    memory = HistoryRecall(asked.out, asked.root)
    timed, notices = memory.with_usual_times(prepared.plan, "host" if in_place else "docker")
    prepared = replace(prepared, plan=timed)
    return prepared, (
        notice,
        hidden,
        *notices,
        *missing_programs.find(prepared.plan, in_place=in_place),
    )
