"""Lines of a console: sentences, paths and columns.

They are fitted to a terminal's width, and left whole elsewhere.

Standard output that may fail without ending a run.

Causes are a closed pipe, a full disk or a lost terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from acceptance.core.language import ENGLISH
from acceptance.reports.panel import cut
from acceptance.reports.text import clean, glyphs_for, one_line, sentence


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


HANG = 4  # columns by which continuation lines are indented
_MOST_LINES = 2_000  # of a table: more GPUs and network cards than any machine has
# with fewer columns nothing is laid out: the terminal wraps lines itself
_NARROW = 24


class LineWriter:
    """Write lines to a console; untrusted text is printed as plain text, never as markup."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.drawing = threading.RLock()  # one at a time: a line, or a frame of the live view
        # On a terminal, lines wrap between words; in a file, a sentence is one line of any length.
        self.watched = console.file.isatty() and not console.is_dumb_terminal
        self.signs = glyphs_for(console.encoding)

    @property
    def failure(self) -> OSError | None:
        """Why nothing more can be printed; None while output works."""
        stream = self.console.file
        return stream.failure if isinstance(stream, SafeOutput) else None

    def say(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print one sentence on a line of its own, wrapped between words on a terminal."""
        line = Text(sentence(text, self.signs), style=style)
        room = self.console.width - indent - HANG
        if not self.watched or room < _NARROW or line.cell_len <= room + HANG:
            self.put(Text(" " * indent).append_text(line))
            return
        for index, part in enumerate(line.wrap(self.console, room)):
            part.rstrip()
            self.put(Text(" " * (indent + (HANG if index else 0))).append_text(part))

    def say_all(self, texts: Iterable[str], indent: int = 0) -> None:
        """Print each of many sentences as `say` does.

        Off a terminal all are printed at once, because there may be tens of thousands.
        """
        if self.watched:
            for text in texts:
                self.say(text, indent=indent)
        elif lines := [f"{' ' * indent}{sentence(text, self.signs)}" for text in texts]:
            self.put(Text("\n".join(lines)))

    def path(self, text: str, indent: int = 0) -> None:
        """Print a path or a command on a line of its own, unbroken, so that it can be copied."""
        self.put(Text(f"{' ' * indent}{one_line(text)}"))

    def table(self, text: str) -> None:
        """Print lines that are laid out already."""
        lines = text.splitlines()
        for line in lines[:_MOST_LINES]:
            self.put(Text(clean(line).replace("\t", " ")))  # no column of ours is aligned with tabs
        if (rest := len(lines) - _MOST_LINES) > 0:
            self.say(ENGLISH.ngettext("... ({n} more line)", "... ({n} more lines)", rest))

    def columns(self, *cells: tuple[str, int], style: str = "") -> None:
        """Print one indented line of texts with their widths; a negative width right-aligns.

        The terminal's edge cuts the last text.
        """
        padded = [
            shown.rjust(-width) if width < 0 else shown.ljust(width)
            for shown, width in ((sentence(text, self.signs), width) for text, width in cells)
        ]
        self.cut(Text("  " + "  ".join(padded), style=style))

    def cut(self, line: Text) -> None:
        """Print one line, cut at the terminal's edge."""
        if self.watched and self.console.width >= _NARROW:
            line = cut(line, self.console.width, self.signs)
        self.put(line)

    def put(self, line: Text) -> None:
        """Print one line as it is."""
        with self.drawing:
            self.console.print(line, soft_wrap=True)
