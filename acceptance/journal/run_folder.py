"""Files of a run that are views of its journal, and writing such a file whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from acceptance.core.message import Message, Text
from acceptance.journal import ownership, segment

VERDICT = "verdict.json"
JUNIT = "junit.xml"
PAGE = "report.html"
# What to do after making room for a file that is no view of the journal.
START_AGAIN = Message("start_again")
# Room on the disk does not cure these.
_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS}


def write_whole(
    path: Path, content: bytes, then: Text | None = None, mode: int | None = None
) -> None:
    """Write a file whole or not at all. Raises JournalError when the disk does not take it.

    `then` tells the user what to do after making room; without it the advice is to write the views
    of the journal again. `mode` is the file's permissions; without it the umask decides.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # root would replace the device by a file
    if path.is_char_device() or path.is_block_device():
        raise segment.JournalError("is_device", path=str(path))
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()  # left by an earlier process with the same process id
        with draft.open("xb") as file:  # "x": never follow a link that somebody placed there
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        cure = then or Message("report_again", {"run": str(path.parent)})
        why = ownership.reason(error, path)
        code = "view_misplaced" if error.errno in _PLACE else "view_unwritten"
        raise segment.JournalError(code, path=str(path), why=why, then=cure) from error
