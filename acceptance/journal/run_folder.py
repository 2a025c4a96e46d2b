"""Files of a run that are views of its journal, and writing such a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acceptance.journal import segment

VERDICT = "verdict.json"
JUNIT = "junit.xml"
PAGE = "report.html"


def write_whole(
    path: Path, content: bytes, then: str | None = None, mode: int | None = None
) -> None:
    """Write a file whole or not at all. Raises JournalError when the disk does not take it.

    `then` tells the user what to do after making room; without it the advice is to write the views
    of the journal again. `mode` is the file's permissions; without it the umask decides.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # root would replace the device by a file
    if path.is_char_device() or path.is_block_device():
        raise segment.JournalError(
            f"{path}: cannot be written (it is a device, not a file): give the name of a file"
        )
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
        cure = then or f"run `rigproof report {path.parent}`"
        raise segment.JournalError(
            f"{path}: cannot be written ({error.strerror}): make room, then {cure}"
        ) from error
