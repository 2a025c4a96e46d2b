"""Recorded runs from their folders, side by side on the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acceptance import fixtures, journal, outputs
from acceptance.judge import comparison, noise, run_facts
from acceptance.judge.comparison import Comparison, Run
from acceptance.judge.language import ENGLISH, Language
from acceptance.judge.verdict import UnreadableRun
from acceptance.reports import comparison_page, comparison_terminal
from acceptance.reports.terminal import Terminal

MOST = 26  # a letter each


class NoComparison(Exception):
    """The runs that were given make no comparison; the message is one sentence."""


def _comparable(folders: Sequence[Path]) -> None:
    """Refuse fewer than two runs, more than there are letters for, and a run beside itself."""
    if not 2 <= len(folders) <= MOST:
        given = "1 run was" if len(folders) == 1 else f"{len(folders)} runs were"
        raise NoComparison(f"{given} given: give the folders of 2 to {MOST} runs")
    known: dict[Path, Path] = {}
    for folder in folders:
        if same := known.get(folder.resolve()):
            raise NoComparison(f"{folder} and {same} are the same run: give another one to compare it with")
        known[folder.resolve()] = folder


def _run(folder: Path) -> Run:
    """One of several runs: which one cannot be judged must be said."""
    try:
        return run_facts.of(journal.read(folder).entries, str(folder))
    except UnreadableRun as error:
        raise UnreadableRun(f"{folder}: {error}: leave it out") from error


def show(
    folders: Sequence[Path],
    screen: Terminal,
    page: Path | None,
    *,
    everything: bool = False,
    language: Language = ENGLISH,
) -> Comparison:
    """Compare runs, print the comparison, and write it as a page where one is asked for; `everything` shows what is within the noise.

    Raises NoComparison, JournalError, UnreadableRun or NoiseFileError, and OSError when standard output is gone.
    """
    _comparable(folders)
    found = comparison.compare([_run(folder) for folder in folders], noise.read(fixtures.locate("noise.toml")))
    comparison_terminal.show(found, screen, everything=everything, language=language)
    if page is not None:
        outputs.put(page, comparison_page.render(found, language).encode("utf-8"), then="start again")
        screen.path(str(page))
    if screen.failure:
        raise OSError(screen.failure.errno, screen.failure.strerror, "standard output")
    return found
