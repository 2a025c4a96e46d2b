from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from datetime import date, time

import pytest
from cases import each

from acceptance.notify.schedule import units

ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/Helsinki",
    "Europe/London",
    "Atlantic/Azores",
    "America/New_York",
    "America/Havana",
    "America/Nuuk",
    "Africa/Cairo",
    "Asia/Shanghai",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
)


@pytest.fixture
def in_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts this process into a time zone until the test ends."""

    def enter(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        clock.tzset()

    yield enter
    monkeypatch.undo()
    clock.tzset()


NEW_YEAR = date(2026, 1, 1)


@each(
    "zone, at, since, lost",
    [
        ("Europe/Berlin", time(2, 30), NEW_YEAR, date(2026, 3, 29)),
        ("Europe/Berlin", time(2, 30), date(2026, 3, 29), date(2026, 3, 29)),
        ("Europe/Berlin", time(2, 30), date(2026, 3, 30), date(2027, 3, 28)),
        ("Europe/Berlin", time(3, 0), NEW_YEAR, None),
        ("Europe/Helsinki", time(3, 30), NEW_YEAR, date(2026, 3, 29)),
        ("Europe/London", time(1, 0), NEW_YEAR, date(2026, 3, 29)),
        ("America/New_York", time(2, 59), NEW_YEAR, date(2026, 3, 8)),
        ("Asia/Shanghai", time(2, 30), NEW_YEAR, None),
        ("UTC", time(2, 30), NEW_YEAR, None),
        *((zone, units.DEFAULT_TIME, NEW_YEAR, None) for zone in ZONES),
    ],
)
def test_a_time_that_one_night_does_not_have(
    in_zone: Callable[[str], None], zone: str, at: time, since: date, lost: date | None
) -> None:
    """What is taken when no time is given, every night has."""
    in_zone(zone)
    assert units.skipped_on(at, since) == lost
