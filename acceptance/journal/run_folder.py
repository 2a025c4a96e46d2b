"""The files of a run that are views of its journal, and writing such a file whole or not at all."""

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

    `then` is what to do when there is room again; for the views of a journal that is to write them
    once more. `mode` says who may read it; without one that is the umask's business.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if (
        path.is_char_device() or path.is_block_device()
    ):  # root would put the file in the device's place
        raise segment.JournalError(
            f"{path}: cannot be written (it is a device, not a file): give the name of a file"
        )
    try:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()  # left by an earlier process of the same number
        with draft.open("xb") as file:  # never through a link that somebody laid
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
