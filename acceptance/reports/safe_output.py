"""Standard output that may fail without ending a run.

Causes are a closed pipe, a full disk or a lost terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
from typing import TextIO


class SafeOutput(io.TextIOBase):
    """A stream whose writes never fail.

    `failure` holds the first error; all later output is dropped. A `plain` stream writes only
    ASCII, whatever the underlying stream can carry.
    """

    def __init__(self, stream: TextIO, *, plain: bool = False) -> None:
        self.failure: OSError | None = None
        self._stream = stream
        self._plain = plain

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has an attribute
        """The stream's encoding, which decides which signs are drawn."""
        return "ascii" if self._plain else self._stream.encoding

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's file descriptor."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Always true."""
        return True

    def write(self, text: str) -> int:
        """Write the text, or drop it after a failure."""
        if self.failure is None:
            safe = (
                text.encode("ascii", errors="backslashreplace").decode("ascii")
                if self._plain
                else text
            )
            try:
                self._stream.write(safe)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream; an error is recorded."""
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def close(self) -> None:
        """Do nothing: the stream belongs to its owner, and may be closed already."""

    def _lose(self, error: OSError) -> None:
        self.failure = error
        with contextlib.suppress(
            OSError
        ):  # the stream's buffer must go somewhere, else Python reports an error at exit
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
            self._stream.flush()
