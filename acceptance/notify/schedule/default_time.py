"""When a night begins where nobody says it, and the nights that do not have that hour.

Light: `--help` reads it.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

AHEAD = 2 * 366  # days: rules of the time zone repeat every year, on another day


def skipped_on(at: time, today: date) -> date | None:
    """The next day, of two years, on which the clocks of this machine do not show that time;
    None where there is none.
    """
    for ahead in range(AHEAD):
        moment = datetime.combine(
            today + timedelta(days=ahead), at
        )  # without a zone: that of the machine
        if datetime.fromtimestamp(moment.timestamp()).time() != at:
            return moment.date()
    return None


DEFAULT_TIME = time(
    4, 30
)  # where clocks are put on, they skip an hour of those before: systemd would skip the night with it
