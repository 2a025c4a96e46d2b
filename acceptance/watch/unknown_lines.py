"""Unknown kernel messages of priority err or worse: which are new, and what they name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from acceptance.core.message import Message
from acceptance.core.parts import Component
from acceptance.core.record import Note
from acceptance.observe import unknown_line
from acceptance.observe.event import KernelEvent
from acceptance.observe.kernel_line import KernelLine
from acceptance.observe.part_names import PartNames

# Unknown messages that name no part are noted up to this number of different ones.
MOST_NOTES = 100


class UnknownLines:
    """The unknown messages of one run.

    `names` are those of the parts. A message that came before the run too, with the same part and
    without its numbers, is none of this run's.
    """

    def __init__(self, names: PartNames) -> None:
        self._names = names
        self._before: set[tuple[Component | None, str]] = set()
        self._noted: set[str] = set()

    def before(self, lines: Iterable[KernelLine]) -> None:
        """Remember the messages before the run."""
        self._before.update(self._key(line) for line in lines if _is_error(line))

    def read(self, line: KernelLine) -> KernelEvent | Note | None:
        """The event of a message that names a part, a note of any other; None where it is no news.

        `line` is one from which no known event came.
        """
        if not _is_error(line) or unknown_line.is_harmless(line.text):
            return None
        part, text = self._key(line)
        if (part, text) in self._before:
            return None
        found = unknown_line.event(line)
        if part is not None:
            return replace(found, component=part, severity="error")
        if text in self._noted or len(self._noted) >= MOST_NOTES:
            return None
        self._noted.add(text)
        return Note(Message("unknown_line", {"text": found.text}))

    def _key(self, line: KernelLine) -> tuple[Component | None, str]:
        return self._names.part_in(line.text), unknown_line.without_numbers(line.text)


def _is_error(line: KernelLine) -> bool:
    return line.level is not None and line.level <= unknown_line.ERR and not line.foreign
