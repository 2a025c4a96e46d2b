"""Standard output as a view of a run: it may go away (a closed pipe, a full disk, a lost
terminal), and the run goes on without it.
"""

from __future__ import annotations

import contextlib
import io
import os
from typing import TextIO


class SafeOutput(io.TextIOBase):
    """A stream that never fails its writer.

    `failure` holds what went wrong first; from then on everything is thrown away.

    A `plain` one writes ASCII alone, whatever the stream could carry.
    """

    def __init__(self, stream: TextIO, *, plain: bool = False) -> None:
        self.failure: OSError | None = None
        self._stream = stream
        self._plain = plain

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base class has an attribute
        """The stream's own, which decides what may be drawn."""
        return "ascii" if self._plain else self._stream.encoding

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's own."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write, or throw away."""
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
        """Flush, or find out that there is nobody to read."""
        if self.failure is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def close(self) -> None:
        """Nothing: the stream is its owner's, and may be closed by now."""

    def _lose(self, error: OSError) -> None:
        self.failure = error
        with contextlib.suppress(
            OSError
        ):  # what the stream still holds must go somewhere, or Python fails over it at its end
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
            self._stream.flush()
