"""Causes and cures as data: what a finding means, its usual causes, and the next command.

Those of a measurement stand in its family (`fixtures/measurements`), in other languages in the
folder of that language there. A file `fixtures/causes/<language>.toml`, read strictly, has an entry
for each kind of event, and the translations of sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from acceptance import resources
from acceptance.core.advice import Advice, Line
from acceptance.core.strict import Strict
from acceptance.expect.measurements import Measurements

_Words = dict[Line, Line]


class AdviceFileError(Exception):
    """rigproof's own file of causes is wrong; the message names file and entry."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Advice by measurement and by event (`xid`, or `xid.79` for one code), and translations.

    Translations are of the texts of other data files, by the English text: `facts` (their names),
    `titles` of the checks, `events` (meanings and actions), and `profiles` (summaries).
    """

    measurements: Mapping[str, Advice]
    by_event: Mapping[str, Advice]
    facts: Mapping[str, str]
    titles: Mapping[str, str]
    events: Mapping[str, str]
    profiles: Mapping[str, str]

    def of_event(self, event: str) -> Advice | None:
        """The entry of an event: that of its code if there is one, else that of its kind."""
        return self.by_event.get(event) or self.by_event.get(event.partition(".")[0])


class _Sheet(Strict, frozen=True):
    cause: tuple[dict[str, Any], ...]
    facts: _Words = msgspec.field(default_factory=dict)
    titles: _Words = msgspec.field(default_factory=dict)
    events: _Words = msgspec.field(default_factory=dict)
    profiles: _Words = msgspec.field(default_factory=dict)


def read(path: Path, measurements: Mapping[str, Advice]) -> Catalogue:
    """Read one file, beside the advice for `measurements` in the same language.

    Raises AdviceFileError if anything is wrong, and for an event that is listed twice.
    """
    sheet = resources.read(path, _Sheet, AdviceFileError)
    events: dict[str, Advice] = {}
    for entry in dict.fromkeys(measurements.values()):
        _put(events, entry)
    for number, row in enumerate(sheet.cause, start=1):
        try:
            entry = msgspec.convert(row, Advice)
            if not entry.events:
                raise ValueError("names no events")
            _put(events, entry)
        except ValueError as error:
            raise AdviceFileError(f"{path.name}, {_name(row, number)}: {error}") from error
    return Catalogue(measurements, events, sheet.facts, sheet.titles, sheet.events, sheet.profiles)


def in_english(families: Measurements) -> dict[str, Advice]:
    """The advice for each measurement as its family has it."""
    return {name: one.advice for name, one in families.by_name.items()}


def translated(folder: Path, families: Measurements) -> dict[str, Advice]:
    """The advice for each measurement in the language of a folder.

    A file for each family has a table for each measurement at which the English stands. The events
    are those of the English.

    Raises AdviceFileError, also for a table that is missing or that nothing in English matches.
    """
    owners = {one.advice_of for one in families.by_name.values()}
    said: dict[str, Advice] = {}
    for family in families.families:
        due = {name for name in owners if families.by_name[name].family == family.name}
        path = folder / f"{family.name}.toml"
        found = resources.read(path, dict[str, Advice], AdviceFileError) if due else {}
        if wrong := sorted(found.keys() ^ due):
            raise AdviceFileError(
                f"{folder.name}/{path.name}: {wrong[0]} is here and not in English, or the other "
                "way round"
            )
        said |= found
    return {
        name: msgspec.structs.replace(said[one.advice_of], events=one.advice.events)
        for name, one in families.by_name.items()
    }


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
