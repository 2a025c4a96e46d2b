"""`rigproof plan`: show what `accept` would do; runs nothing."""

from __future__ import annotations

import argparse
import os

from acceptance.cli import closing, run_options
from acceptance.cli import options as cli_options
from acceptance.machine import gpu_selection
from acceptance.reports.terminal import Terminal
from acceptance.run import planning
from acceptance.station import preflight


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rigproof plan`."""
    cli_options.run(parser)


def run(args: argparse.Namespace) -> int:
    """Show the plan. Raises OSError when standard output is closed."""
    options, language = run_options.options(args), closing.language_of(args)
    hidden = gpu_selection.refuse_outside(options.gpus, os.environ)
    prepared = planning.prepare(options)
    remark = preflight.station_notice(options.station, options.image)
    screen = Terminal.on_stdout(language)
    run_options.show_plan(screen, prepared, remark, hidden, details=True)
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0
