from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from datetime import date, time

import pytest
from cases import each

from acceptance.notify.schedule import default_time

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


@pytest.mark.parametrize(
    ("zone", "at", "lost"),
    [
        ("Europe/Berlin", time(2, 30), date(2026, 3, 29)),
        ("Europe/Berlin", time(3, 0), None),
        ("Europe/Helsinki", time(3, 30), date(2026, 3, 29)),
        ("Europe/London", time(1, 0), date(2026, 3, 29)),
        ("America/New_York", time(2, 59), date(2026, 3, 8)),
        ("Asia/Shanghai", time(2, 30), None),
        ("UTC", time(2, 30), None),
    ],
)
def test_a_time_that_one_night_does_not_have(
    in_zone: Callable[[str], None], zone: str, at: time, lost: date | None
) -> None:
    in_zone(zone)
    assert default_time.skipped_on(at, date(2026, 1, 1)) == lost


def test_the_next_such_night_is_told(in_zone: Callable[[str], None]) -> None:
    in_zone("Europe/Berlin")
    assert default_time.skipped_on(time(2, 30), date(2026, 3, 29)) == date(2026, 3, 29)
    assert default_time.skipped_on(time(2, 30), date(2026, 3, 30)) == date(2027, 3, 28)


@each("zone", ZONES)
def test_every_night_has_the_time_that_is_taken_when_none_is_given(
    in_zone: Callable[[str], None], zone: str
) -> None:
    in_zone(zone)
    assert default_time.skipped_on(default_time.DEFAULT_TIME, date(2026, 1, 1)) is None
