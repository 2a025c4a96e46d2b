"""Output that every verb shares: the language, and a run's closing block."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from acceptance.cli import options, stdout
from acceptance.core.exit_code import PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Message, english
from acceptance.journal import run_folder
from acceptance.journal.run import Run
from acceptance.journal.segment import JournalError
from acceptance.reports import advice, languages
from acceptance.reports.terminal import Terminal
from acceptance.wording import words
from acceptance.wording.errors import said


def after_output(screen: Terminal, code: int = PASS) -> int:
    """The exit code of a verb that exists for what it prints.

    Output that could not be written makes no 0. It changes no other code: a FAIL stays one.
    """
    return code if screen.failure is None else stdout.after_failure(screen.failure, code)


def language_of(args: argparse.Namespace) -> Language:
    """The language of page and terminal.

    It is chosen first, so that an unknown language or a broken catalogue is reported before
    anything heats.
    """
    advice.shipped()  # every report needs these
    words.sentences()
    return languages.choose(args.lang, os.environ)


def output(args: argparse.Namespace) -> tuple[Language, Terminal]:
    """The language of a verb, and the terminal on standard output that speaks it."""
    language = language_of(args)
    return language, Terminal.on_stdout(language)


def write_ocp(run: Run, file: Path | None, code: int, language: Language) -> int:
    """Write the run as OCP output where that was asked for; returns the exit code then.

    A pass whose file could not be written is no 0: whoever reads that file would not know of it.
    """
    if file is None:
        return code
    # imported here: hardly any call asks for it
    from acceptance.reports import ocp

    try:
        run_folder.write_whole(
            file,
            ocp.render(run),
            then=Message(english("ocp_again", "rebuild it with `rigproof report RUN --ocp FILE`")),
            mode=0o644,
        )
    except JournalError as error:
        options.say_error(words.text(said(error), language))
        return code or UNJUDGED
    return code


def show_verdict(screen: Terminal, run: Run) -> int:
    """Show a run's verdict and the paths of its files; returns its exit code."""
    files = [run.folder / name for name in (run_folder.PAGE, run_folder.JUNIT, run_folder.VERDICT)]
    shown = [str(file) for file in files if file.is_file()]
    screen.verdict(run, shown)
    return run.verdict.exit_code
