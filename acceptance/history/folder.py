"""The folder of a machine's history, below the folder of the runs: its files and its lock.

A file is whole at every moment, and on the disk before anything relies on it: a new one is written
beside the old one, synced to the disk and then renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from acceptance.core import plain_text, regular_file

DATABASE = "history.sqlite3"
FOLDER = "history"
# Ids that can be a file's name as they are: an installation's id is 32 hexadecimal digits, but a
# host name may be anything.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def folder(out: Path, machine_id: str) -> Path:
    """`<out>/history/<machine-id>`; the folder need not exist.

    For an id that is not a plain name, its digest is used.
    """
    return out / FOLDER / file_name(machine_id)


def file_name(id_: str) -> str:
    """An id of a machine or a run as a file's name: the id if it is a plain name, or its digest."""
    if _PLAIN.fullmatch(id_):
        return id_
    return f"id-{hashlib.sha256(id_.encode('utf-8', 'replace')).hexdigest()[:32]}"


def database(out: Path, machine_id: str) -> Path:
    """The file of an older rigproof's history, which `rigproof history convert` reads."""
    return folder(out, machine_id) / DATABASE


_HOLDER_BYTES = 300


class Locked(Exception):
    """Another call holds the lock; the text says which: host, process, and since when."""


@contextlib.contextmanager
def hold(path: Path, wait_s: float) -> Iterator[None]:
    """Hold the lock of this file, which is made if needed, and write into it who holds it.

    By flock(2): the kernel releases the lock of a call that dies. On a shared file system it
    excludes calls on other hosts as far as that passes flock on; one that refuses it is an error.

    Raises Locked where another call holds it for more than `wait_s` seconds, and OSError.
    """
    regular_file.require(path)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise Locked(_holder(file)) from None
                time.sleep(0.05)
        os.ftruncate(file, 0)
        os.pwrite(file, _own().encode(), 0)
        yield
    finally:
        os.close(file)


def _own() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}, since {datetime.now(UTC):%FT%TZ}"


def _holder(file: int) -> str:
    text = os.pread(file, _HOLDER_BYTES, 0).decode("utf-8", "replace")
    return plain_text.quote(text)


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
