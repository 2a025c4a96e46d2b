"""`rigproof accept`: the machine tested, from the lock to the verdict."""

from __future__ import annotations

import argparse
from dataclasses import replace

from acceptance.reports.terminal import Terminal
from acceptance.verbs import asked, spoken, testing


def run(given: argparse.Namespace) -> int:
    """Test the machine; returns the verdict's exit code."""
    testing.forget(given.run_dir_file)
    options, language = replace(asked.options(given), run_dir_file=given.run_dir_file), spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    found, run_dir = testing.machine(options, screen, language)
    return spoken.close(screen, found, run_dir)
