"""How a night ended that systemd calls failed, and whether somebody was told of it already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acceptance.reports.text import one_line
from acceptance.schedule import units
from acceptance.schedule.note import Note

# What a unit started by OnFailure= is told of the one that failed, since systemd 251 (systemd.exec(5)).
RESULT, CODE, STATUS = "MONITOR_SERVICE_RESULT", "MONITOR_EXIT_CODE", "MONITOR_EXIT_STATUS"
_WORDS = {"1": "FAIL", "3": "UNJUDGED"}  # nightly's exit codes for a verdict, where it has left a note of it


@dataclass(frozen=True, slots=True)
class Ending:
    """How it ended, in one sentence; `told` when the run itself has told everybody."""

    text: str
    told: bool


def ending(environment: Mapping[str, str], note: Note | None, *, user: bool) -> Ending:
    """What systemd says of it, and the night's own note: without one nobody is taken to be told, for told twice is better than never."""
    result, code, status = (one_line(environment.get(name, ""), 100) for name in (RESULT, CODE, STATUS))
    told = note is not None and note.told
    own = " --user" if user else ""
    untold = "" if told else ", and not everybody was told of it"
    cure = f"see `journalctl{own} --unit {units.SERVICE}`"
    if not result:
        return Ending(f"the nightly run did not end with PASS: {cure}", told)
    if code == "exited" and note is not None and status in _WORDS:
        return Ending(f"the nightly run ended with {_WORDS[status]}{untold}: {cure}", told)
    if code == "exited":
        return Ending(f"the nightly run did not come to a verdict (exit code {status}): {cure}", told)
    how = f"{result}, signal {status}" if status else result
    return Ending(f"the nightly run was ended before its verdict ({how}): {cure}", told)
