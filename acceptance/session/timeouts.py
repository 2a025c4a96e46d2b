"""How long a check may take: its programs, and the whole of it. Pure."""

from __future__ import annotations

from acceptance.core.plan import PlannedCheck


def programs_s(planned: PlannedCheck) -> float:
    """Seconds that a check's programs have, all together: a quarter more than expected, its
    slack, and half a minute for a slow machine.
    """
    return planned.seconds * 1.25 + planned.slack_s + 30.0


def check_limit_s(planned: PlannedCheck) -> float:
    """Seconds after which the test engine itself ends a check: later than the deadline of its
    programs, which say more.
    """
    return programs_s(planned) + 30.0
