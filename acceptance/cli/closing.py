"""Output that every verb shares: the language, and a run's closing block."""

from __future__ import annotations

import argparse
import os

from acceptance.core.language import ENGLISH, Language
from acceptance.journal import run_folder
from acceptance.journal.run import Run
from acceptance.reports import advice, languages
from acceptance.reports.summary import exit_code
from acceptance.reports.terminal import Terminal
from acceptance.wording import words


def require_output(screen: Terminal) -> None:
    """Raise OSError if standard output was closed before all was printed."""
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")


def language_of(args: argparse.Namespace) -> Language:
    """The language of page and terminal.

    It is chosen first, so that an unknown language or a broken catalogue is reported before
    anything heats.
    """
    advice.shipped()  # every report needs it
    language = languages.choose(args.lang, os.environ)
    for one in {ENGLISH.code, language.code}:
        words.catalogue(one)
    return language


def show_verdict(screen: Terminal, run: Run) -> int:
    """Show a run's verdict and the paths of its files; returns its exit code."""
    files = [run.folder / name for name in (run_folder.PAGE, run_folder.JUNIT, run_folder.VERDICT)]
    shown = [str(file) for file in files if file.is_file()]
    screen.verdict(run, shown)
    return exit_code(run.verdict)
