"""What a program prints, kept up to a cap and counted beyond it; and handed on
line by line while it runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from acceptance.core import regular_file

CAP_BYTES = 16 * 1024 * 1024
LINE_BYTES = 65536
CHUNK = 65536


@dataclass(slots=True)
class LineSplitter:
    """Cuts what comes in pieces into lines, and hands each to `heard` when its end has come; the
    last one may have none.

    A line of more than LINE_BYTES is left out: nothing grows with what a program prints.
    """

    on_line: Callable[[str], None]
    _begun: bytearray = field(default_factory=bytearray)
    _too_long: bool = False

    def put(self, chunk: bytes) -> None:
        """Take the next piece."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._begin(end)
            self._hand()
        self._begin(rest)

    def end(self) -> None:
        """The text is over: what is left without a line's end is a line too."""
        if self._begun or self._too_long:
            self._hand()

    def _begin(self, piece: bytes) -> None:
        if self._too_long or len(self._begun) + len(piece) > LINE_BYTES:
            self._begun.clear()
            self._too_long = True
        else:
            self._begun += piece

    def _hand(self) -> None:
        if not self._too_long:
            self.on_line(self._begun.decode("utf-8", errors="replace").removesuffix("\r"))
        self._begun.clear()
        self._too_long = False


@dataclass(slots=True)
class Spool:
    """One output stream: kept up to the cap, counted beyond it, so that a flood neither blocks the
    program nor fills the disk.

    `lines`, where there are some, get all of it, beyond the cap too.
    """

    stream: IO[bytes]
    log: Path | None
    cap: int
    lines: LineSplitter | None = None
    kept: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    failure: OSError | None = None

    def drain(self) -> None:
        """Read the stream to its end; the body of a thread."""
        try:
            log = regular_file.create(self.log) if self.log else None
        except OSError as error:
            self.failure, log = error, None
        with log or contextlib.nullcontext():
            while chunk := os.read(self.stream.fileno(), CHUNK):
                keep = chunk[: self.cap - len(self.kept)]
                self.kept += keep
                self.dropped += len(chunk) - len(keep)
                if log and keep and not self.failure:
                    try:
                        if log.write(keep) != len(keep):
                            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    except (
                        OSError
                    ) as error:  # a full disk: the program's own run is still judged from memory
                        self.failure = error
                if self.lines is not None:
                    self.lines.put(chunk)
        if self.lines is not None:
            self.lines.end()
        self.stream.close()

    def text(self) -> str:
        """What was kept."""
        return bytes(self.kept).decode("utf-8", errors="replace")
