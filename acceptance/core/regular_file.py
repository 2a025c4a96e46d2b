"""Open only regular files of bounded size, without ever waiting.

For files whose path comes from a user or an earlier run. A named pipe would block whoever opens it,
opening a device may do anything (a watchdog restarts the machine), and an endless file fills the
memory. The path is checked before it is opened, and the open file again. Symbolic links are
followed. `O_NONBLOCK` stays set: files of /proc that wait for news (`/proc/kmsg`) then fail
instead.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# Size limits in bytes by kind of file, each far above any size seen.
MACHINE_FILE = MIB  # 64 GPUs with a table for every pair take 150 KiB
# verdict.json, a baseline, the self-test's record: the verdict of 16 GPUs has 2 MiB
SMALL_RECORD = 16 * MIB
SEGMENT_BYTES = GIB
TELEMETRY_BYTES = 16 * GIB  # 64 GPUs over the 30 days that a burn may last
LINE = 64 * MIB  # one record: the plan of the largest machine has some MiB
RECORDING = 256 * MIB  # what a tool printed, or a kernel log

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a link"),
)


class NotRegular(OSError):
    """The path is not a regular file, or the file is too large.

    `strerror` says which, as part of a sentence.
    """


def _not_regular(path: Path, why: str) -> NotRegular:
    return NotRegular(errno.EINVAL, why, str(path))


def size(count: int) -> str:
    """A number of bytes in words."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}".replace(".0 ", " ")
    return f"{count} bytes"


def check(path: Path, status: os.stat_result, most: int) -> None:
    """Raise NotRegular where the status is not that of a regular file of at most so many bytes."""
    for is_kind, name in _KINDS:
        if is_kind(status.st_mode):
            raise _not_regular(path, f"it is {name}, not a file")
    if status.st_size > most:
        raise _too_large(path, size(status.st_size), most)


def _too_large(path: Path, held: str, most: int) -> NotRegular:
    return _not_regular(path, f"it holds {held}, and at most {size(most)} are read")


def _descriptor(path: Path, most: int) -> int:
    check(path, path.stat(), most)
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        check(path, os.fstat(file), most)
    except OSError:
        os.close(file)
        raise
    return file


def open_read(path: Path, most: int) -> IO[bytes]:
    """A regular file of at most `most` bytes, open for reading.

    Raises NotRegular, and OSError as `open` does.
    """
    return os.fdopen(_descriptor(path, most), "rb")


def read(path: Path, most: int) -> bytes:
    """The whole content of a regular file.

    Raises NotRegular where it is none or has more than `most` bytes, and OSError as `open` does.
    """
    file = _descriptor(path, most)
    try:
        return content(file, path, most)
    finally:
        os.close(file)


def content(file: int, path: Path, most: int) -> bytes:
    """The rest of an open file. Raises NotRegular where that is more than `most` bytes."""
    found = bytearray()
    while len(found) <= most and (piece := os.read(file, min(MIB, most + 1 - len(found)))):
        found += piece
    if len(found) > most:  # it grew, or its size was not known beforehand
        raise _too_large(path, "more", most)
    return bytes(found)


def lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The lines of an open file with their line ends; the last may have none.

    Raises NotRegular for a line of more than LINE bytes.
    """
    while line := file.readline(LINE + 1):
        if len(line) > LINE:
            raise _not_regular(path, f"it holds a line of more than {size(LINE)}")
        yield line


def require(path: Path) -> None:
    """Raise NotRegular where the path exists and is not a regular file, whatever its size."""
    with contextlib.suppress(FileNotFoundError):
        found = path.stat()
        check(path, found, found.st_size)


def create(path: Path) -> IO[bytes]:
    """A regular file, empty, open for unbuffered writing.

    Raises NotRegular where the path is something else: a named pipe would block its writer until a
    reader comes.
    """
    require(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    file = os.open(path, flags, 0o666)
    return os.fdopen(file, "wb", buffering=0)


def write(path: Path, content: bytes) -> None:
    """Write a file that only our own programs read.

    Raises OSError as `create` does, and where the disk does not take all of the content.
    """
    with create(path) as file:
        if file.write(content) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
