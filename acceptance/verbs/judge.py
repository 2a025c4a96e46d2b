"""`rigproof judge`: a recorded run judged again."""

from __future__ import annotations

import argparse

from acceptance import outputs
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Fold a recorded run again; returns its verdict's exit code."""
    screen = Terminal.on_stdout(spoken.language_of(given))
    return spoken.close(screen, outputs.judge(given.run_dir), given.run_dir)
