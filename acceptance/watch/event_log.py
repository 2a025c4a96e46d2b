"""EventLog: writes the events of one watcher to its journal segment, and limits event storms.

The suspicion that an Xid raises against a GPU under test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from acceptance.core.evidence import AnyBody
from acceptance.core.message import Message, Text, english
from acceptance.core.parts import Component
from acceptance.core.record import Event, Note, Suspicion
from acceptance.journal import segment
from acceptance.observe.event import own_load, pci_function
from acceptance.watch.targets import WatchTarget

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
                    Note(
                        Message(
                            english(
                                "kinds_left_out",
                                "more than {most} different events of severity {severity}: "
                                "further ones are left out",
                            ),
                            {"most": MAX_KINDS, "severity": event.severity},
                        )
                    )
                )
            self._by_severity[severity] = MAX_KINDS + 1
            return
        self._by_severity[severity] += name not in self._seen
        self._seen[name] += 1
        if self._seen[name] <= STORM:
            self._writer.write(event)
        elif self._seen[name] == STORM + 1:
            what = " ".join(str(part) for part in name if part is not None)
            self._writer.write(
                Note(
                    Message(
                        english(
                            "events_left_out",
                            "{event}: seen more than {most} times; further ones are counted no "
                            "more",
                        ),
                        {"event": what, "most": STORM},
                    )
                )
            )

    def note(self, text: Text, *, trouble: bool = False) -> None:
        """Journal a note."""
        self._writer.write(Note(text, trouble))

    def put(self, body: AnyBody) -> None:
        """Journal a record of another kind, without a limit."""
        self._writer.write(body)

    def close(self) -> None:
        """Close the segment."""
        self._writer.close()


# `pid=4121, name=gpu_burn, `; without a process `pid='<unknown>', name=<unknown>`.
_PROCESS = re.compile(r"\bpid=\'?(?P<pid>\d{1,10})\'?(?:, name=(?P<name>[^,<]+))?")


def suspicion(
    kind: str,
    code: int | str | None,
    where: Component | None,
    text: str,
    targets: Iterable[WatchTarget],
) -> Suspicion | None:
    """The suspicion; None for an event of another kind, or not of a GPU under test."""
    suspects, consequence = own_load(kind, code)
    if not suspects or where is None:
        return None
    for target in targets:
        if pci_function(target.pci_address) == where:
            match = _PROCESS.search(text)
            pid = int(match["pid"]) if match else None
            command = (match["name"] or "").strip() or None if match else None
            return Suspicion(target.name, pid, command, consequence)
    return None
