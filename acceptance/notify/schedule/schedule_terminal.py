"""The terminal output of `rigproof schedule`."""

from __future__ import annotations

from pathlib import Path

from acceptance.core.language import Language
from acceptance.core.message import UserError
from acceptance.notify.schedule import installation, units
from acceptance.notify.schedule.installation import InstallResult, UnitLocation
from acceptance.notify.schedule.units import TIMER, Schedule
from acceptance.reports.terminal import Terminal


def print_units(
    screen: Terminal, language: Language, schedule: Schedule, place: UnitLocation
) -> None:
    """Print the units as `install` would write them, and the line for cron.

    Nothing is written. Raises UserError.
    """
    for name, text in installation.unit_texts(schedule).items():
        screen.path(f"### {place.folder / name}")
        screen.table(text)
        screen.path("")
    screen.say(language("without systemd, the same as a line for `crontab -e`:"))
    try:
        screen.path(units.cron(schedule))
    except UserError as error:
        screen.say(str(error))


def print_installed(
    screen: Terminal,
    language: Language,
    done: InstallResult,
    place: UnitLocation,
    schedule: Schedule,
) -> None:
    """Print what was written, and what is still to be done by hand."""
    _paths(screen, done.files)
    if not done.files:
        screen.say(language("the schedule is already installed as requested"))
    own = " --user" if place.user else ""
    if done.running:
        screen.say(language("every night at {time}; when next:", time=f"{schedule.at:%H:%M}"))
        screen.path(f"systemctl{own} list-timers {TIMER}")
    else:
        screen.say(
            language(
                "systemd is not running here, so nothing was started; on a machine where "
                "it is, type:"
            ),
            "yellow",
        )
        screen.path(f"systemctl{own} daemon-reload && systemctl{own} enable --now {TIMER}")
    if place.user:
        screen.say(
            language("a user's timers do not run while that user is logged out, unless you type:")
        )
        screen.path("loginctl enable-linger")


def print_removed(screen: Terminal, language: Language, done: InstallResult) -> None:
    """Print what was removed."""
    _paths(screen, done.files)
    if done.files:
        screen.say(
            language("the schedule is removed; the reports and the history of past nights stay")
        )
    else:
        screen.say(language("there was no schedule to remove"))


def _paths(screen: Terminal, paths: tuple[Path, ...]) -> None:
    for path in paths:
        screen.path(str(path))
