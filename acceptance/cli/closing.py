"""Output that every verb shares: the language, and a run's closing block."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from acceptance.core.language import Language
from acceptance.core.verdict import Verdict
from acceptance.journal import reader, run_folder
from acceptance.reports import languages
from acceptance.reports.locations import find_locations
from acceptance.reports.terminal import Terminal


def require_output(screen: Terminal) -> None:
    """Raise OSError if standard output was closed before all was printed."""
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")


def language_of(args: argparse.Namespace) -> Language:
    """The language of page and terminal.

    It is chosen first, so that an unknown language or a broken catalogue is reported before
    anything heats.
    """
    languages.catalogue("en")  # JUnit and verdict.json need English in any case
    return languages.choose(args.lang, os.environ)


def show_verdict(screen: Terminal, verdict: Verdict, run_dir: Path) -> int:
    """Show a run's verdict and the paths of its files; returns its exit code."""
    where = find_locations(reader.read(run_dir))
    names = (run_folder.PAGE, run_folder.JUNIT, run_folder.VERDICT)
    screen.verdict(
        verdict, [str(run_dir / name) for name in names if (run_dir / name).is_file()], where
    )
    return verdict.exit_code()
