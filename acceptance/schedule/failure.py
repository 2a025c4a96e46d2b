"""How a night ended that systemd calls failed, and whether somebody was told of it already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.reports.text import one_line
from acceptance.schedule import units

# What a unit started by OnFailure= is told of the one that failed, since systemd 251 (systemd.exec(5)).
RESULT, CODE, STATUS = "MONITOR_SERVICE_RESULT", "MONITOR_EXIT_CODE", "MONITOR_EXIT_STATUS"
_TOLD = {"1": "FAIL", "3": "UNJUDGED"}  # nightly's exit codes after which it has told everybody itself


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended, in one sentence; `told` when the run itself has told everybody."""

    text: str
    told: bool


def ending(environment: Mapping[str, str], *, user: bool) -> Ending:
    """What systemd says of it. Where it says nothing (before systemd 251) nobody is taken to be told: told twice is better than never."""
    result, code, status = (one_line(environment.get(name, ""), 100) for name in (RESULT, CODE, STATUS))
    own = " --user" if user else ""
    cure = f"see `journalctl{own} --unit {units.SERVICE}`"
    if not result:
        return Ending(f"the nightly run did not end with PASS: {cure}", told=False)
    if code == "exited" and status in _TOLD:
        return Ending(f"the nightly run ended with {_TOLD[status]}: {cure}", told=True)
    if code == "exited":
        return Ending(f"the nightly run did not come to a verdict (exit code {status}): {cure}", told=False)
    how = f"{result}, signal {status}" if status else result
    return Ending(f"the nightly run was ended before its verdict ({how}): {cure}", told=False)
