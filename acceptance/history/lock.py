"""The lock of a folder that several calls write to."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from acceptance.core import plain_text, regular_file

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
