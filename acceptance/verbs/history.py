"""`rigproof history`: what the runs of a machine measured from night to night."""

from __future__ import annotations

import argparse

from acceptance.histories import Asked, Histories, NoHistory
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Show the history, write it out, prune it or make it anew; returns 0, every trouble is raised."""
    language = spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    if not given.prune and (given.keep_days is not None or given.keep_gib is not None):
        raise NoHistory("--keep-days and --keep-gib say what stays when something is removed: give --prune as well")
    if given.page and (given.export or given.rebuild or given.prune):
        raise NoHistory("--page goes with looking at the history: leave --export, --rebuild and --prune away")
    asked = Asked(given.out, given.machine_id, given.measurement, given.component, given.nights)
    histories = Histories(asked, screen, language)
    if given.export:
        histories.export(given.export)
    elif given.rebuild:
        histories.rebuild()
    elif given.prune:
        histories.prune(given.keep_days, given.keep_gib)
    else:
        histories.show(given.page)
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0
