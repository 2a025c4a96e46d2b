"""Exceptions that end a verb with one sentence.

Imported only when one was raised, because it imports many modules.
"""

from __future__ import annotations

from pathlib import Path

from acceptance.core.message import SetupError, UserError
from acceptance.expect import (
    collected,
    site_sheets,
)
from acceptance.history.errors import HistoryError
from acceptance.journal import ownership, reader, segment
from acceptance.observe import sysfs
from acceptance.process import command
from acceptance.run import (
    lock,
    signals,
    signature,
)
from acceptance.wording import words
from acceptance.wording.errors import WordedError, WordedUserError

# A mistake in the user's arguments or files: exit code 2.
USER_ERRORS: tuple[type[BaseException], ...] = (
    UserError,
    site_sheets.SiteSheetError,
    collected.PlanError,
    UserError,
    UserError,
    UserError,
    WordedUserError,
    UserError,
    lock.MachineBusy,
    UserError,
    UserError,
    reader.NoRun,
    signature.SignatureError,
    UserError,
    UserError,
    UserError,
    WordedUserError,
    UserError,
    WordedUserError,
    WordedUserError,
    WordedUserError,
)
# A fault of rigproof or the machine: exit code 3, and the machine stays unjudged.
SYSTEM_ERRORS: tuple[type[BaseException], ...] = (
    signals.UserInterrupt,
    command.CommandError,
    WordedError,
    segment.JournalError,
    SetupError,
    WordedError,
    SetupError,
    sysfs.SysfsError,
    HistoryError,
    WordedError,
)


def reason(error: OSError) -> str:
    """Why a file cannot be read or written, with the cure where root left it."""
    path = error.filename
    return words.text(ownership.reason(error, Path(path))) if path else error.strerror or str(error)
