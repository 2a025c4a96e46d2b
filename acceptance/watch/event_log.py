"""EventLog: writes the events of one watcher to its journal segment, and limits event storms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from acceptance.core.evidence import AnyBody
from acceptance.core.message import Message, Text
from acceptance.core.parts import Component
from acceptance.core.record import Event, Note
from acceptance.journal import segment

# A storm (corrected PCIe errors come by the thousand a second) says nothing new after this many
# events of one kind, code and component.
STORM = 100
# The same limit for different events of one severity: each failing page may have its own code. Each
# severity is counted by itself, so that many mild events never hide a severe one.
MAX_KINDS = 2000


class EventLog:
    """A segment of events and notes. Raises JournalError when it cannot be created or written."""

    def __init__(self, path: Path, root: Path) -> None:
        self._writer = segment.Writer(path, root)
        self._seen: Counter[tuple[str, object, Component | None]] = Counter()
        self._by_severity: Counter[tuple[str, bool]] = Counter()

    def event(self, event: Event) -> None:
        """Journal an event, unless enough similar ones are there already."""
        name = (event.kind, event.code, event.component)
        severity = (event.severity, event.hardware)
        if name not in self._seen and self._by_severity[severity] >= MAX_KINDS:
            if self._by_severity[severity] == MAX_KINDS:
                self._writer.write(
                    Note(Message("kinds_left_out", {"most": MAX_KINDS, "severity": event.severity}))
                )
            self._by_severity[severity] = MAX_KINDS + 1
            return
        self._by_severity[severity] += name not in self._seen
        self._seen[name] += 1
        if self._seen[name] <= STORM:
            self._writer.write(event)
        elif self._seen[name] == STORM + 1:
            what = " ".join(str(part) for part in name if part is not None)
            self._writer.write(Note(Message("events_left_out", {"event": what, "most": STORM})))

    def note(self, text: Text, *, trouble: bool = False) -> None:
        """Journal a note."""
        self._writer.write(Note(text, trouble))

    def put(self, body: AnyBody) -> None:
        """Journal a record of another kind, without a limit."""
        self._writer.write(body)

    def close(self) -> None:
        """Close the segment."""
        self._writer.close()
