"""`rigproof plan`: show what `accept` would do; runs nothing."""

from __future__ import annotations

import argparse
import os

from acceptance.cli import closing, run_options
from acceptance.machine import gpu_selection
from acceptance.reports.terminal import Terminal
from acceptance.run import planning
from acceptance.station import preflight


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof plan`."""
    run_options.arguments(parser, "accept")


def run(args: argparse.Namespace) -> int:
    """Show the plan. Raises OSError when standard output is closed."""
    options, language = run_options.read(args), closing.language_of(args)
    hidden = gpu_selection.refuse_outside(options.gpus, os.environ)
    prepared = planning.prepare(options)
    remark = preflight.station_notice(options.station, options.image)
    screen = Terminal.on_stdout(language)
    run_options.show_plan(screen, prepared, remark, hidden, details=True)
    closing.require_output(screen)
    return 0
