"""The default time of a nightly run, and the nights that lack a given hour.

Imports little, because `--help` imports it.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

AHEAD = 2 * 366  # days: rules of the time zone repeat every year, on another day


def skipped_on(at: time, today: date) -> date | None:
    """The next day within two years on which this machine's clocks skip that time; else None."""
    for ahead in range(AHEAD):
        # without a zone: in the machine's time zone
        moment = datetime.combine(today + timedelta(days=ahead), at)
        if datetime.fromtimestamp(moment.timestamp()).time() != at:
            return moment.date()
    return None


# where clocks are put forward, they skip an earlier hour: systemd would skip a night set to it
DEFAULT_TIME = time(4, 30)
