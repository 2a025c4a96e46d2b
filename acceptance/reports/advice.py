"""Causes and cures as data: what a finding means, its usual causes, and the next command.

A file `fixtures/causes/<language>.toml`, read strictly, has an entry for each family of
measurements and each kind of event. A command may have placeholders for the component's location;
`next_anywhere` is its general form, for an unknown location or several components.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from acceptance import resources
from acceptance.core.strict import Strict

# Properties of the finding's component: PCI address, slot, serial number, UUID, the driver's index,
# the kernel's name for it.
PLACEHOLDERS = frozenset({"address", "slot", "serial", "uuid", "index", "name"})
# One line, not empty, without surrounding white space.
_Line = Annotated[str, msgspec.Meta(pattern=r"\A\S([^\n]*\S)?\Z")]
_Words = dict[_Line, _Line]


class AdviceFileError(Exception):
    """rigproof's own file of causes is wrong; the message names file and entry."""


class LikelyCause(Strict, frozen=True):
    """One likely cause: `what` it is, and how to `tell` it from the others."""

    what: _Line
    tell: _Line


class Advice(Strict, frozen=True):
    """The advice for one family of measurements, or one kind of event.

    `symptom` is one sentence: what is seen, and what it means. `causes` are in order, the most
    likely first. `next` is one command line for Debian and Ubuntu; `shows` says what to look for in
    its output, and what a healthy machine prints. `vendor` is what to send the vendor if the
    trouble stays.
    """

    symptom: _Line
    causes: Annotated[tuple[LikelyCause, ...], msgspec.Meta(min_length=2, max_length=5)]
    next: _Line
    shows: _Line
    vendor: _Line
    next_anywhere: _Line | None = None
    measurements: tuple[_Line, ...] = ()
    events: tuple[_Line, ...] = ()

    def command(self, place: Mapping[str, str]) -> str:
        """The next command for this location (values by placeholder).

        It is the command's general form if a value is unknown.
        """
        needed = placeholders(self.next)
        if self.next_anywhere is None or needed <= place.keys():
            return self.next.format_map({name: place[name] for name in needed})
        return self.next_anywhere


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


def placeholders(text: str) -> frozenset[str]:
    """The names in braces.

    Raises ValueError for braces that are not a placeholder, also those of the command itself.
    """
    found = set()
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is not None:
            if not name.isidentifier() or form or conversion:
                raise ValueError(f"{{{name}}} is no placeholder")
            found.add(name)
    return frozenset(found)


def read(path: Path) -> Catalogue:
    """Read one file.

    Raises AdviceFileError if anything is wrong, and for a name that is listed twice.
    """
    sheet = resources.read(path, _Sheet, AdviceFileError)
    measurements: dict[str, Advice] = {}
    events: dict[str, Advice] = {}
    for number, row in enumerate(sheet.cause, start=1):
        try:
            entry = msgspec.convert(row, Advice)
            _put(measurements, entry.measurements, entry)
            _put(events, entry.events, entry)
            for trouble in _troubles(entry):
                raise ValueError(trouble)
        except ValueError as error:
            raise AdviceFileError(f"{path.name}, {_name(row, number)}: {error}") from error
    return Catalogue(measurements, events, sheet.facts, sheet.titles, sheet.events, sheet.profiles)


def _put(by_key: dict[str, Advice], names: tuple[str, ...], entry: Advice) -> None:
    for name in names:
        if name in by_key:
            raise ValueError(f"{name} stands twice")
        by_key[name] = entry


def _troubles(entry: Advice) -> Iterator[str]:
    if not entry.measurements and not entry.events:
        yield "names neither measurements nor events"
    used = placeholders(entry.next)
    if unknown := used - PLACEHOLDERS:
        yield f"next has {{{min(unknown)}}}; the placeholders are {', '.join(sorted(PLACEHOLDERS))}"
    if bool(used) != (entry.next_anywhere is not None):
        yield "next_anywhere is for a command with placeholders, and such a command needs it"


def _name(row: Mapping[str, Any], number: int) -> str:
    """The name of an entry: its first measurement or event, else its number."""
    for key in ("measurements", "events"):
        names = row.get(key)
        if isinstance(names, list) and names and isinstance(names[0], str):
            return f"the entry of {names[0]}"
    return f"entry {number}"
