"""The output of a program: kept up to a cap, counted beyond it, and passed on line by line."""

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
    """Splits a stream into lines and passes each complete line to `on_line`.

    The last line needs no line end. A line longer than LINE_BYTES is left out, so that memory does
    not grow with the output.
    """

    on_line: Callable[[str], None]
    _begun: bytearray = field(default_factory=bytearray)
    _too_long: bool = False

    def put(self, chunk: bytes) -> None:
        """Add the next piece."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._begin(end)
            self._hand()
        self._begin(rest)

    def end(self) -> None:
        """End the stream: a rest without a line end is a line too."""
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
    """One output stream, kept up to the cap and counted beyond it.

    So a flood of output neither blocks the program nor fills the disk. `lines`, if given, gets the
    whole stream, also beyond the cap.
    """

    stream: IO[bytes]
    log: Path | None
    cap: int
    lines: LineSplitter | None = None
    kept: bytearray = field(default_factory=bytearray)
    dropped: int = 0
    failure: OSError | None = None
    _taken: int = 0

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
                    # a full disk: the result in memory is still judged
                    except OSError as error:
                        self.failure = error
                if self.lines is not None:
                    self.lines.put(chunk)
        if self.lines is not None:
            self.lines.end()
        self.stream.close()

    def new_lines(self) -> list[str]:
        """The complete lines of the kept part that came since the last call."""
        begin, self._taken = self._taken, self.kept.rfind(b"\n") + 1
        return self.kept[begin : self._taken].decode("utf-8", "replace").split("\n")[:-1]

    def text(self) -> str:
        """The kept part of the stream."""
        return bytes(self.kept).decode("utf-8", errors="replace")
