"""Lines of a console: sentences, paths, and columns, fitted to a terminal's width, or left whole
where it is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from acceptance.reports.glyphs import glyphs_for
from acceptance.reports.panel import cut
from acceptance.reports.safe_output import SafeOutput
from acceptance.reports.text import clean, count_of, one_line

HANG = 4  # columns by which the second line of a sentence is set in
_MOST_LINES = 2_000  # of a table: more than any machine has GPUs and network cards
# below this many columns nothing can be laid out: lines break where the terminal breaks them
_NARROW = 24


class LineWriter:
    """Writes to a console; untrusted text goes through as plain text, never as markup."""

    def __init__(self, console: Console) -> None:
        self.console = console
        # A terminal gets its lines broken between words; a file gets one line a sentence, whatever
        # its length.
        self.watched = console.file.isatty() and not console.is_dumb_terminal
        self.signs = glyphs_for(console.encoding)

    @property
    def failure(self) -> OSError | None:
        """Why nothing more could be printed, if that is so."""
        stream = self.console.file
        return stream.failure if isinstance(stream, SafeOutput) else None

    def say(self, text: str, style: str = "", indent: int = 0) -> None:
        """One sentence on a line of its own, broken between words where the
        terminal is narrower.
        """
        line = Text(one_line(text), style=style)
        room = self.console.width - indent - HANG
        if not self.watched or room < _NARROW or line.cell_len <= room + HANG:
            self.put(Text(" " * indent).append_text(line))
            return
        for index, part in enumerate(line.wrap(self.console, room)):
            part.rstrip()
            self.put(Text(" " * (indent + (HANG if index else 0))).append_text(part))

    def say_all(self, texts: Iterable[str], indent: int = 0) -> None:
        """Each of many sentences as `say` has it; where nobody watches all of them at once,
        because there may be tens of thousands.
        """
        if self.watched:
            for text in texts:
                self.say(text, indent=indent)
        elif lines := [f"{' ' * indent}{one_line(text)}" for text in texts]:
            self.put(Text("\n".join(lines)))

    def path(self, text: str, indent: int = 0) -> None:
        """A path or a command on a line of its own, never broken: it is there to be copied."""
        self.put(Text(f"{' ' * indent}{one_line(text)}"))

    def table(self, text: str) -> None:
        """Lines that were laid out already, as they are."""
        lines = text.splitlines()
        for line in lines[:_MOST_LINES]:
            self.put(Text(clean(line).replace("\t", " ")))  # no column of ours is set with tabs
        if len(lines) > _MOST_LINES:
            self.say(f"... ({count_of(len(lines) - _MOST_LINES, 'more line')})")

    def columns(self, *cells: tuple[str, int], style: str = "") -> None:
        """One indented line of texts with their widths; a negative width sets the text to the
        right.

        A terminal's edge cuts the last.
        """
        padded = [
            one_line(text).rjust(-width) if width < 0 else one_line(text).ljust(width)
            for text, width in cells
        ]
        self.cut(Text("  " + "  ".join(padded), style=style))

    def cut(self, line: Text) -> None:
        """One line that a terminal's edge cuts."""
        if self.watched and self.console.width >= _NARROW:
            line = cut(line, self.console.width, self.signs)
        self.put(line)

    def put(self, line: Text) -> None:
        """One line as it is."""
        self.console.print(line, soft_wrap=True)
