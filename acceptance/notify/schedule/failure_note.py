"""The note that a nightly run leaves for systemd's failure unit, and that unit's report."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acceptance.core import regular_file
from acceptance.core.exit_code import FAIL, UNJUDGED
from acceptance.core.message import Message, known
from acceptance.journal import run_folder
from acceptance.journal.segment import JournalError
from acceptance.notify.schedule import units
from acceptance.reports.text import one_line

# Variables that a unit started by OnFailure= gets about the failed one, since systemd 251
# (systemd.exec(5)).
RESULT, CODE, STATUS = "MONITOR_SERVICE_RESULT", "MONITOR_EXIT_CODE", "MONITOR_EXIT_STATUS"
# nightly's exit codes for a verdict, valid if it has left a note
_WORDS = {
    str(FAIL): "FAIL",
    str(UNJUDGED): "UNJUDGED",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a night ended; `told` if the run itself has notified every target."""

    message: Message
    told: bool


def ending(environment: Mapping[str, str], note: FailureNote | None, *, user: bool) -> Ending:
    """How the night ended, from systemd's variables and the night's note.

    Without a note the targets count as not notified: twice is better than never.
    """
    result, code, status = (
        one_line(environment.get(name, ""), 100) for name in (RESULT, CODE, STATUS)
    )
    is_reported = note is not None and note.told
    own = " --user" if user else ""
    see = f"`journalctl{own} --unit {units.SERVICE}`"
    if not result:
        message = Message("night_not_passed", {"see": see})
    elif code == "exited" and note is not None and status in _WORDS:
        about = known(verdict=_WORDS[status], headline=note.headline, see=see)
        message = Message("night_told", about) if is_reported else Message("night_untold", about)
    elif code == "exited":
        message = Message("night_without_verdict", {"code": status, "see": see})
    else:
        signal = status or None
        message = Message("night_cut_off", known(how=result, signal=signal, see=see))
    return Ending(message, is_reported)


NAME = ".told"  # in the folder of the runs
# The id of one start, as systemd gives it to the night (since 232) and to the unit started by
# OnFailure= (since 251): systemd.exec(5).
OWN, OTHERS = "INVOCATION_ID", "MONITOR_INVOCATION_ID"


class FailureNote(msgspec.Struct, frozen=True):
    """The note of one start.

    `run_dir` is the run's folder, None if no run was started; `told` says whether every target was
    notified; `headline` is what the run found.
    """

    invocation: str
    run_dir: str | None
    told: bool
    headline: str | None = None


def write_note(
    out: Path,
    environment: Mapping[str, str],
    run_dir: Path | None,
    *,
    told: bool,
    headline: str | None = None,
) -> None:
    """Leave the note if systemd started the night.

    If it cannot be written, the failure unit finds none and notifies every target again.
    """
    invocation = environment.get(OWN)
    if invocation:
        # a folder's name may not be UTF-8
        with contextlib.suppress(JournalError, OSError, UnicodeError):
            content = msgspec.json.encode(
                FailureNote(
                    invocation, str(run_dir) if run_dir is not None else None, told, headline
                )
            )
            out.mkdir(parents=True, exist_ok=True)  # a night that could not begin leaves none
            run_folder.write_whole(out / NAME, content, then=run_folder.START_AGAIN)


def find(out: Path, environment: Mapping[str, str]) -> FailureNote | None:
    """The note of the night that has failed now; None if it left none."""
    invocation = environment.get(OTHERS)
    try:
        found = msgspec.json.decode(
            regular_file.read(out / NAME, regular_file.SMALL_RECORD), type=FailureNote
        )
    except (OSError, ValueError):
        return None
    return found if invocation and found.invocation == invocation else None
