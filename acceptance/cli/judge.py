"""`rigproof judge`: judge a recorded run again."""

from __future__ import annotations

import argparse

from acceptance.cli import closing, options
from acceptance.core.exit_code import PASS, UNJUDGED
from acceptance.core.message import Message, english
from acceptance.journal import run as journal_run
from acceptance.journal.run import Run
from acceptance.reports.terminal import Terminal


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof judge`."""
    options.run_dir(parser)
    parser.add_argument(
        "--from-logs",
        action="store_true",
        help="read the kept outputs of the programs again, and say where log and journal differ",
    )
    options.language(parser)


def run(args: argparse.Namespace) -> int:
    """Fold a recorded run again; returns its verdict's exit code.

    Where a log differs from the journal nothing is proved: 3, unless the run failed.
    """
    language, screen = closing.output(args)
    found = journal_run.read(args.run_dir)
    differs = args.from_logs and _from_logs(found, screen)
    code = closing.show_verdict(screen, found)
    if differs and code == PASS:
        screen.say(language("UNJUDGED: the logs do not prove this PASS (see above)"), "bold yellow")
        code = UNJUDGED
    return closing.after_output(screen, code)


def _from_logs(found: Run, screen: Terminal) -> bool:
    """Say what the logs tell of the journal's values; returns whether they differ."""
    # Imported here: logs are read by the checks, which no other call needs.
    from acceptance.run import log_reading

    again = log_reading.read_again(found)
    screen.say_messages(again.differences, "bold red")
    counts = {"compared": again.compared, "measured": again.measured}
    screen.say_messages(
        [
            Message(
                english(
                    "logs_compared",
                    "{compared} of {measured} values were compared with the logs of the programs; "
                    "the others (sensors, driver, system and disks) have no log that is read again",
                ),
                counts,
            )
        ]
    )
    return bool(again.differences)
