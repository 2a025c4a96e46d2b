"""`rigproof baseline`: the machine's birth certificate."""

from __future__ import annotations

import argparse

from acceptance import baselines
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Make a run the machine's baseline, or show the one that there is."""
    language = spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    if given.what == "accept":
        baselines.accept(given.run_dir, given.out, screen, replace=given.replace, language=language)
    else:
        baselines.show(given.out, screen, as_json=given.json, language=language)
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0
