"""Schedules for tests."""

from __future__ import annotations

from datetime import time
from pathlib import Path

from acceptance.notify.schedule import units
from acceptance.notify.schedule.units import Schedule


def schedule(
    *arguments: str,
    program: str = "/opt/rigproof/bin/rigproof",
    folder: str = "/var/lib/rigproof",
    at: time = units.DEFAULT_TIME,
    user: bool = False,
    run_as: str | None = None,
    telling: tuple[str, ...] = (),
) -> Schedule:
    return Schedule((program,), arguments, telling, Path(folder), at, user, run_as)


def settings(text: str) -> dict[str, list[str]]:
    """The settings of a unit by their names, each with all its values; comments
    and sections left out.
    """
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, mark, value = line.partition("=")
        if mark and not line.startswith(("#", ";")):
            found.setdefault(name, []).append(value)
    return found
