"""Causes and cures as data: what a finding means, its usual causes, and the next command.

Those of a measurement stand in its family (`fixtures/measurements`), those of a kind of event in
`fixtures/causes.toml`, read strictly. Both are English; a reader's language has each text in its
catalogue (`Language.text`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from acceptance import resources
from acceptance.core.advice import Advice
from acceptance.core.strict import Strict
from acceptance.expect import measurements
from acceptance.expect.measurements import Measurements


class AdviceFileError(Exception):
    """rigproof's own file of causes is wrong; the message names file and entry."""


@dataclass(frozen=True, slots=True)
class AdviceBook:
    """Advice by measurement and by event (`xid`, or `xid.79` for one code)."""

    measurements: Mapping[str, Advice]
    by_event: Mapping[str, Advice]

    def of_event(self, event: str) -> Advice | None:
        """The entry of an event: that of its code if there is one, else that of its kind."""
        return self.by_event.get(event) or self.by_event.get(event.partition(".")[0])


class _Sheet(Strict, frozen=True):
    cause: tuple[dict[str, Any], ...]

    def __hash__(self) -> int:
        return hash(len(self.cause))


@functools.cache
def shipped() -> AdviceBook:
    """rigproof's own. Raises AdviceFileError, MeasurementFileError or FixtureMissing."""
    return read(resources.locate("causes.toml"), measurements.shipped())


def read(path: Path, families: Measurements) -> AdviceBook:
    """The advice of one file for events, and that of the families.

    Raises AdviceFileError if anything is wrong, and for an event that is listed twice.
    """
    sheet = resources.read(path, _Sheet, AdviceFileError)
    of = {name: one.advice for name, one in families.by_name.items()}
    events: dict[str, Advice] = {}
    for entry in dict.fromkeys(of.values()):
        _put(events, entry)
    for number, row in enumerate(sheet.cause, start=1):
        try:
            entry = msgspec.convert(row, Advice)
            if not entry.events:
                raise ValueError("names no events")
            _put(events, entry)
        except ValueError as error:
            raise AdviceFileError(f"{path.name}, {_name(row, number)}: {error}") from error
    return AdviceBook(of, events)


def _put(by_event: dict[str, Advice], entry: Advice) -> None:
    for event in entry.events:
        if event in by_event:
            raise ValueError(f"{event} stands twice")
        by_event[event] = entry


def _name(row: Mapping[str, Any], number: int) -> str:
    """The name of an entry: its first event, else its number."""
    events = row.get("events")
    if isinstance(events, list) and events and isinstance(events[0], str):
        return f"the entry of {events[0]}"
    return f"entry {number}"
