"""Write files so that each is whole at every moment, and on the disk before anything relies on it.

A new file is written beside the old one, synced to the disk and then renamed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write JSON files of one folder, by name, synced to the disk: all of them, or none.

    Every file is written under another name before the first one is renamed, so that a full disk
    changes nothing. Leftovers of a writer that was killed are removed; the caller holds the lock.
    Raises OSError.
    """
    for stray in folder.glob(".*.json.*"):
        stray.unlink()
    drafts: list[tuple[Path, Path]] = []
    try:
        for name, content in files:
            draft = folder / f".{name}.{os.getpid()}"
            drafts.append((draft, folder / name))
            with draft.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for draft, file in drafts:
            draft.replace(file)
    except BaseException:
        for draft, _ in drafts:
            with contextlib.suppress(OSError):
                draft.unlink()
        raise
    sync(folder)


def sync(folder: Path) -> None:
    """Bring the names in a folder to the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
