"""Exceptions that end a verb with one sentence.

Imported only when one was raised, because it imports many modules.
"""

from __future__ import annotations

from pathlib import Path

from acceptance.core.message import SetupError, UserError
from acceptance.journal import run_folder
from acceptance.wording import words
from acceptance.wording.errors import WordedError

# Exit code 2 for a UserError; else 3, and the machine stays unjudged.
SENTENCES = (UserError, SetupError, WordedError, KeyboardInterrupt)


def reason(error: OSError) -> str:
    """Why a file cannot be read or written, with the cure where root left it."""
    path = error.filename
    return (
        words.text(run_folder.reason(error, Path(path))) if path else error.strerror or str(error)
    )
