"""`rigproof baseline`: a run made the machine's birth certificate, or the one there is shown."""

from __future__ import annotations

import argparse

from acceptance import baselines
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Make a run the machine's baseline, or show it; returns 0, every trouble is raised."""
    language = spoken.language_of(given)
    screen = Terminal.on_stdout(language)
    if given.what == "accept":
        baselines.accept(given.run_dir, given.out, screen, replace=given.replace, language=language)
    else:
        baselines.show(given.out, screen, as_json=given.json, language=language)
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return 0
