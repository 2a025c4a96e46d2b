"""`rigproof schedule`: from what was typed to units that are installed, removed or shown, and what is told of a night that failed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from acceptance import telling
from acceptance.judge.language import Language
from acceptance.reports.terminal import Terminal
from acceptance.schedule import failure, installing, quoting, saying
from acceptance.schedule.installing import Place, ScheduleError
from acceptance.schedule.units import Schedule


def place_of(given: argparse.Namespace, environment: Mapping[str, str], root: Path) -> Place:
    """Where its units belong."""
    return Place.of_user(environment, root) if given.user else Place.system(root)


def schedule_of(given: argparse.Namespace) -> Schedule:
    """The schedule that was asked for; what its nightly run is given is looked at now, so that a mistake is found by day.

    Raises ScheduleError or TellingError.
    """
    if given.user and given.run_as is not None:
        raise ScheduleError("--run-as is for the units of the machine, --user for those of one user: give one of them")
    nightly = given.nightly
    if nightly.machine is not None and not nightly.machine.is_file():
        raise ScheduleError(f"--machine {nightly.machine}: there is no such file: give the machine file's path")
    if nightly.webhook is not None and not nightly.webhook.startswith("@"):
        raise ScheduleError(
            "--webhook: everybody may read a unit, and the address may be its own key: write it into a file that only its owner may read, "
            "and give --webhook @FILE"
        )
    telling.read(nightly.textfile, nightly.on_fail, nightly.webhook, nightly.webhook_secret_file)
    return Schedule(
        program=_program(),
        arguments=given.words,
        telling=tuple(_told(nightly)),
        folder=Path.cwd(),
        at=given.at,
        user=given.user,
        run_as=installing.known_user(given.run_as) if given.run_as is not None else None,
    )


def _told(nightly: argparse.Namespace) -> Iterator[str]:
    """Those of its arguments that say whom to tell."""
    for name in ("textfile", "on_fail", "webhook", "webhook_secret_file"):
        value = getattr(nightly, name)
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _program() -> tuple[str, ...]:
    """This very rigproof, by its whole path."""
    script = Path(sys.executable).with_name("rigproof")
    return (str(script),) if script.is_file() else (sys.executable, "-m", "acceptance")


def run(given: argparse.Namespace, screen: Terminal, language: Language, root: Path = Path("/")) -> int:
    """Do what was asked for. Raises ScheduleError or TellingError."""
    place = place_of(given, os.environ, root)
    if given.what == "uninstall":
        saying.uninstalled(screen, language, installing.uninstall(place))
        return 0
    schedule = schedule_of(given)
    if given.what == "install":
        saying.installed(screen, language, installing.install(schedule, place), place, schedule)
        return 0
    try:
        saying.shown(screen, language, schedule, place)
    except quoting.Unquotable as error:
        raise ScheduleError(f"{error}: give it another name") from error
    return 0


def failed(given: argparse.Namespace, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What there is to say of a night that systemd calls failed; who was not told by the run itself is told now.

    Raises TellingError.
    """
    settings = telling.read(given.textfile, given.on_fail, given.webhook, given.webhook_secret_file)
    ended = failure.ending(environment, user=given.user)
    return (ended.text, *(() if ended.told else telling.trouble(ended.text, settings)))
