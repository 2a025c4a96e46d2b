"""The time limits of a check: for its programs, and for the whole of it. Pure."""

from __future__ import annotations

from acceptance.core.plan import PlannedCheck


def programs_s(planned: PlannedCheck) -> float:
    """Seconds for all programs of a check together.

    A quarter more than expected, its slack, and half a minute for a slow machine.
    """
    return planned.seconds * 1.25 + planned.slack_s + 30.0


def check_limit_s(planned: PlannedCheck) -> float:
    """Seconds after which pytest itself ends a check.

    This is later than the deadline of its programs, whose errors say more.
    """
    return programs_s(planned) + 30.0
