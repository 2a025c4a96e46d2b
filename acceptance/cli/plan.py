"""`rigproof plan`: show what `accept` would do; runs nothing."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from acceptance.cli import closing, run_options
from acceptance.machine import gpu_selection
from acceptance.reports.terminal import Terminal
from acceptance.run import missing_programs, planning
from acceptance.run.recall import HistoryRecall
from acceptance.station import preflight
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof plan`."""
    run_options.arguments(parser, "accept")


def run(args: argparse.Namespace) -> int:
    """Show the plan. Raises OSError when standard output is closed."""
    options, language = run_options.read(args), closing.language_of(args)
    hidden = gpu_selection.refuse_outside(options.gpus, os.environ)
    prepared = planning.prepare(options)
    notice = preflight.station_notice(options.station, options.image)
    remark = words.message(notice, language) if notice else None
    screen = Terminal.on_stdout(language)
    unused = words.message(hidden, language) if hidden else None
    in_place = options.station == "host" or notice is not None
    memory = HistoryRecall(options.out, options.root)
    timed = memory.with_usual_times(prepared.plan, "host" if in_place else "docker")
    prepared = replace(prepared, plan=timed)
    for line in prepared.alarm:
        screen.say(words.message(line, language), "bold red")
    missing = missing_programs.find(prepared.plan, in_place=in_place)
    told = (
        *(words.text(note.text, language) for note in prepared.notes),
        *(words.message(one, language) for one in missing),
    )
    run_options.show_plan(screen, prepared, remark, unused, *told, details=True)
    return closing.after_output(screen)
