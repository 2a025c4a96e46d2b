"""`rigproof report`: a recorded run's files written again."""

from __future__ import annotations

import argparse

from acceptance import journal, lock, outputs, telling, unfinished
from acceptance.judge.record import RunClosed, RunEnded
from acceptance.reports.terminal import Terminal
from acceptance.verbs import spoken


def run(given: argparse.Namespace) -> int:
    """Write the files again. A run that never came to its end is closed first, as the next start would."""
    language = spoken.language_of(given)
    textfile = telling.read(textfile=given.textfile).textfile
    screen = Terminal.on_stdout(language)
    if not any(isinstance(entry.body, RunEnded | RunClosed) for entry in journal.read(given.run_dir).entries):
        with lock.MachineLock():  # whoever holds it may be writing this very run
            sentence = unfinished.close(given.run_dir)
        if sentence:
            screen.say(sentence, "yellow")
    found = outputs.write(given.run_dir, language)
    if textfile is not None:
        telling.textfile(given.run_dir, textfile)
    return spoken.close(screen, found, given.run_dir)
