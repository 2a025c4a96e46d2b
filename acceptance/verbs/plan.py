"""`rigproof plan`: what `accept` would do; nothing is run."""

from __future__ import annotations

import argparse
import os

from acceptance import preflight, preparation, selection
from acceptance.reports.terminal import Terminal
from acceptance.verbs import asked, spoken


def run(given: argparse.Namespace) -> int:
    """Show the plan. Raises OSError when standard output is gone."""
    options, language = asked.options(given), spoken.language_of(given)
    hidden = selection.refuse_outside(options.gpus, os.environ)
    prepared = preparation.prepare(options)
    remark = preflight.remark(options.station, options.image)
    screen = Terminal.on_stdout(language)
    asked.show(screen, prepared, remark, hidden, details=True)
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0
