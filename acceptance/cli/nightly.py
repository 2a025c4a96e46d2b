"""`rigproof nightly`: the same test every night, compared with earlier nights.

A night is skipped while somebody uses the machine.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from msgspec import structs

from acceptance import resources
from acceptance.cli import closing, machine_test, run_options
from acceptance.cli import options as cli_options
from acceptance.cli.errors import SENTENCES
from acceptance.core.exit_code import SKIPPED
from acceptance.core.language import Language
from acceptance.core.message import Message, UserError
from acceptance.journal.run import Run
from acceptance.notify import notices, targets
from acceptance.notify.schedule import installation
from acceptance.reports import explanation
from acceptance.reports.terminal import Terminal
from acceptance.run import idle_gate, lock, profile
from acceptance.run.profile import IdlePolicy
from acceptance.wording import words


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof nightly`."""
    machine_test.arguments(parser, "nightly")
    parser.add_argument(
        "--most-skipped",
        metavar="N",
        type=cli_options.number,
        help=(
            "fail after this many nights in a row skipped because the machine was in use "
            "(default: the profile's, 7)"
        ),
    )
    cli_options.notifications(parser)


def run(args: argparse.Namespace) -> int:
    """Test the machine if nobody uses it; returns the exit code.

    The code is the verdict's, or 4 if the machine was in use: the run was not started or was
    stopped.
    """
    machine_test.forget(args.run_dir_file)
    language, screen = closing.output(args)
    settings = targets.read(args.textfile, args.on_fail, args.webhook, args.webhook_secret_file)
    try:
        code, night, troubles = _night(args, screen, language, settings)
    except lock.MachineBusy as error:
        # No notification: the run that has just taken the machine is this night's, and sends its
        # own.
        screen.say(
            language("skipped: {reason}", reason=words.message(error.message, language)), "yellow"
        )
        return SKIPPED
    except (Exception, KeyboardInterrupt) as error:
        # Errors of rigproof's own included: whoever relies on the nights must be notified.
        troubles = notices.notify_no_run(_why(error), settings)
        _write_note(args, None, screen, language, troubles)
        raise
    _write_note(args, night, screen, language, troubles)
    return code


def _write_note(
    args: argparse.Namespace,
    night: Run | None,
    screen: Terminal,
    language: Language,
    troubles: tuple[Message, ...],
) -> None:
    """Print failed notifications, and leave a note saying whether the failure unit must notify."""
    first = None if night is None else explanation.of_run(night)
    installation.write_note(
        args.out,
        os.environ,
        None if night is None else night.folder,
        told=not troubles,
        headline=None if first is None else first.line(),
    )
    screen.say_messages(troubles, "yellow")


def _why(error: BaseException) -> str:
    """Why no run was started; the repr of an exception that is not written for users."""
    if isinstance(error, SENTENCES):
        return str(error) or "stopped"
    return f"rigproof broke off: {error!r}"


def _night(
    args: argparse.Namespace,
    screen: Terminal,
    language: Language,
    settings: targets.NotificationTargets,
) -> tuple[int, Run, tuple[Message, ...]]:
    """Run the night; returns the exit code, the run, and the failed notifications."""
    nights = _nights(args)
    options = replace(
        run_options.read(args), niceness=nights.niceness, run_dir_file=args.run_dir_file
    )
    try:
        night = machine_test.run_test(options, screen, language, nights)
    except lock.MachineBusy as error:
        if abs(error.held_s) < nights.together_s:
            raise
        night = machine_test.record_postponed(
            options, screen, language, nights, idle_gate.busy_reason(error)
        )
    code = closing.show_verdict(screen, night)
    if night.verdict.postponed is not None and night.verdict.verdict != "FAIL":
        return SKIPPED, night, notices.notify_skipped(night, settings)
    return code, night, notices.notify_run(night, settings)


def _nights(args: argparse.Namespace) -> IdlePolicy:
    """The policy for a machine in use.

    It comes from the run's profile, else from the profile nightly; the command line may set
    `most_skipped`. Raises UserError.
    """
    known = profile.read(resources.locate("profiles.toml"))
    nights = profile.choose(known, args.profile).nights or profile.choose(known, "nightly").nights
    if nights is None:
        raise UserError(
            "profiles.toml: the profile nightly does not say how it gives way: install "
            "rigproof again"
        )
    most = args.most_skipped
    return nights if most is None else structs.replace(nights, most_skipped=most)
