"""`rigproof compare`: recorded runs side by side."""

from __future__ import annotations

import argparse

from acceptance import comparing
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Show the runs; 0 when none is worse than the first outside the noise, 1 when one is."""
    language = spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    found = comparing.show(given.run_dirs, screen, given.page, everything=given.all, language=language)
    return 1 if found.worse else 0
