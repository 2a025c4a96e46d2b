"""Write files so that each is whole at every moment, and on the disk before anything relies on it.

A new file is written beside the old one, synced to the disk and then renamed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

_LEFT_S = 3600.0  # nobody writes for so long: another process has the number of a killed writer


def write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write JSON files of one folder, by name, synced to the disk: all of them, or none.

    Every file is written under another name before the first one is renamed, so that a full disk
    changes nothing. Several processes may write at once. Drafts of a writer that was killed are
    removed. Raises OSError.
    """
    own = f".{os.getpid()}"
    for draft in folder.glob(".*.json.*"):
        with contextlib.suppress(FileNotFoundError):
            writes = draft.suffix != own and Path("/proc", draft.suffix[1:]).exists()
            if not writes or time.time() - draft.stat().st_mtime > _LEFT_S:
                draft.unlink()
    drafts: list[tuple[Path, Path]] = []
    try:
        for name, content in files:
            draft = folder / f".{name}{own}"
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
