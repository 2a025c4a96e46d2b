"""`rigproof schedule`: install, show or remove systemd units, and report failed nights."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from acceptance.cli import closing, options
from acceptance.cli.options import Parser
from acceptance.core.exit_code import PASS, UNJUDGED
from acceptance.core.language import Language
from acceptance.core.message import Text, UserError
from acceptance.notify import notices, targets
from acceptance.notify.schedule import installation, units, user_rights
from acceptance.notify.schedule import schedule_terminal as schedule_screen
from acceptance.notify.schedule.installation import UnitLocation
from acceptance.notify.schedule.units import DEFAULT_TIME, Schedule
from acceptance.reports.terminal import Terminal
from acceptance.run import site_folder
from acceptance.wording import words


class _Nightly(argparse.Action):
    """Parse the arguments of the nightly run with its own parser.

    A mistake is so found when the schedule is installed. Both the parsed values and the original
    words are kept.
    """

    def __call__(
        self, _parser: object, namespace: argparse.Namespace, values: object, _option: object = None
    ) -> None:
        assert isinstance(values, list)
        from acceptance.cli import nightly  # only `install` and `show` need a whole run's modules

        parser = Parser(prog="rigproof nightly", add_help=False)
        nightly.arguments(parser)
        parser.on_error = None  # no run was to be started
        namespace.nightly = parser.parse_args(values)
        namespace.words = tuple(values)


def _user_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--user", action="store_true", help="use your own user's units instead of the system's"
    )
    options.language(parser)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rigproof schedule`."""
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, text in (
        ("install", "write the units and start the timer"),
        ("show", "show the units, and a line for cron; writes nothing"),
    ):
        asked = options.add(kinds, name, text, "schedule")
        asked.add_argument(
            "--at",
            metavar="TIME",
            type=options.time_of_day,
            default=DEFAULT_TIME,
            help=f"time of day (default: {DEFAULT_TIME:%H:%M})",
        )
        asked.add_argument("--run-as", metavar="USER", help="the user who runs it (default: root)")
        asked.add_argument(
            "nightly",
            metavar="ARGUMENT",
            nargs="*",
            action=_Nightly,
            help="after --: arguments for nightly",
        )
        _user_argument(asked)
    _user_argument(
        options.add(kinds, "uninstall", "stop the timer and remove the units", "schedule")
    )
    text = (
        "started by the failure unit: report how the night ended, and notify targets not yet "
        "notified"
    )
    failed = options.add(kinds, "failed", text, "schedule")
    _user_argument(failed)
    options.out(failed)
    options.notifications(failed)


def run(args: argparse.Namespace, root: Path = Path("/")) -> int:
    """Install, show or remove the schedule, or report a failed night; returns the exit code.

    Raises UserError.
    """
    language, screen = closing.output(args)
    if args.what == "failed":
        return _failed(args, screen, language)
    place = UnitLocation.of_user(os.environ, root) if args.user else UnitLocation.system(root)
    if args.what == "uninstall":
        schedule_screen.print_removed(screen, language, installation.uninstall(place))
        return 0
    schedule = _schedule(args)
    if args.what == "install":
        schedule_screen.print_installed(
            screen, language, installation.install(schedule, place), place, schedule
        )
    else:
        schedule_screen.print_units(screen, language, schedule, place)
    return 0


def _failed(args: argparse.Namespace, screen: Terminal, language: Language) -> int:
    """Report how the night ended, and notify the targets that the run did not.

    Returns 3 if a target failed, else 0.
    """
    settings, wrong = targets.usable(
        args.textfile, args.on_fail, args.webhook, args.webhook_secret_file
    )
    left = installation.find(args.out, os.environ)
    ended = installation.ending(os.environ, left, user=args.user)
    screen.say_messages([ended.message])
    troubles: tuple[Text, ...]
    if ended.told:
        troubles = wrong
    elif left is not None and left.run_dir is not None:
        troubles = (*wrong, *notices.notify_recorded(Path(left.run_dir), settings))
    else:
        troubles = (*wrong, *notices.notify_no_run(words.message(ended.message), settings))
    screen.say_messages(troubles)
    return UNJUDGED if troubles else PASS


def _schedule(args: argparse.Namespace) -> Schedule:
    """The schedule of the command line.

    The arguments of the nightly run are checked now, so that a mistake is found at once. Raises
    UserError.
    """
    _require_lasting(Path(sys.prefix))
    if args.user and args.run_as is not None:
        raise UserError(
            "--run-as is for the units of the machine, --user for those of one user: give "
            "one of them"
        )
    if lost := units.skipped_on(args.at, date.today()):
        raise UserError(
            f"--at {args.at:%H:%M}: on {lost} the clocks here are put on over it, and systemd "
            "would skip that night: give another time, "
            f"such as {units.DEFAULT_TIME:%H:%M}"
        )
    nightly = args.nightly
    run_as = installation.known_user(args.run_as) if args.run_as is not None else None
    if run_as is None:
        _look_at(nightly)
    else:
        program = tuple(dict.fromkeys((Path(_program()[0]), Path(sys.executable))))
        with user_rights.acting_as(run_as) as asked:
            if asked and (reason := user_rights.missing_right(program, Path.cwd(), nightly.out)):
                raise UserError(f"--run-as {run_as}: that user {reason}")
            _look_at(nightly)
    made = Schedule(
        program=_program(),
        arguments=args.words,
        telling=tuple(_notification_arguments(nightly)),
        folder=Path.cwd(),
        at=args.at,
        user=args.user,
        run_as=run_as,
    )
    for option, path in (("--out", nightly.out), ("--textfile", nightly.textfile)):
        if path is None or not made.protected:
            continue
        if shut := next(
            (one for one in units.READ_ONLY if path.resolve().is_relative_to(one)), None
        ):
            raise UserError(
                f"{option} {path}: the units may not write below {shut}: give a path in /var/lib"
            )
    return made


# Folders of environments in uv's cache, which it marks with CACHEDIR.TAG.
_OF_UV = re.compile(r"(archive|builds|environments)-v\d+")


def _require_lasting(environment: Path) -> None:
    """Raise UserError where this Python's environment is in the cache of uvx or `pipx run`."""
    folder = environment.parent
    of_uv = _OF_UV.fullmatch(folder.name) and (folder.parent / "CACHEDIR.TAG").is_file()
    # pipx keeps what it installs in `venvs`, and what it only runs elsewhere.
    of_pipx = folder.name != "venvs" and (environment / "pipx_metadata.json").is_file()
    if of_uv or of_pipx:
        raise UserError(
            f"rigproof runs from a cache ({environment}), which may be gone by the first night: "
            "install it to stay, with `uv tool install rigproof` or `pipx install rigproof`, then "
            "install the schedule with that one"
        )


def _look_at(nightly: argparse.Namespace) -> None:
    """Check the arguments of a nightly run, with the rights of the user who will run it.

    Raises UserError.
    """
    try:
        found = nightly.machine is None or nightly.machine.is_file()
    except OSError:  # the user may not enter its folder
        found = True
    if not found:
        raise UserError(
            f"--machine {nightly.machine}: there is no such file: give the machine file's path"
        )
    if nightly.machine is not None and not os.access(nightly.machine, os.R_OK):
        raise UserError(
            f"--machine {nightly.machine}: whoever runs the night may not read it: `chmod a+r "
            f"{shlex.quote(str(nightly.machine))}`, "
            "or put it into a folder that everybody may enter"
        )
    if nightly.webhook is not None and not nightly.webhook.startswith("@"):
        raise UserError(
            "--webhook: everybody may read a unit, and an address may be its own key: write it "
            "into a file that only its owner may read, "
            "and give --webhook @FILE"
        )
    if nightly.sheets is not None:
        site_folder.read_sheets(site_folder.find(nightly.sheets, Path("/")), named=True)
    if nightly.checks is not None:
        site_folder.read_checks(nightly.checks)
    targets.read(nightly.textfile, nightly.on_fail, nightly.webhook, nightly.webhook_secret_file)


def _notification_arguments(nightly: argparse.Namespace) -> Iterator[str]:
    """The arguments of the failure unit: the notification targets, and --out for the run's note."""
    for name in ("out", "textfile", "on_fail", "webhook", "webhook_secret_file"):
        value = getattr(nightly, name)
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _program() -> tuple[str, ...]:
    """The argv of this rigproof, with absolute paths."""
    script = Path(sys.executable).with_name("rigproof")
    return (str(script),) if script.is_file() else (sys.executable, "-m", "acceptance")
