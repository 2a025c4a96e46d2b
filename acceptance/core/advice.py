"""Advice: what a finding means, its usual causes, and the next command."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Annotated

import msgspec

from acceptance.core.strict import Strict

# Properties of the finding's component: PCI address, slot, serial number, UUID, the driver's index,
# the kernel's name for it.
PLACEHOLDERS = frozenset({"address", "slot", "serial", "uuid", "index", "name"})
# One line, not empty, without surrounding white space.
Line = Annotated[str, msgspec.Meta(pattern=r"\A\S([^\n]*\S)?\Z")]


class LikelyCause(Strict, frozen=True):
    """One likely cause: `what` it is, and how to `tell` it from the others."""

    what: Line
    tell: Line


class Advice(Strict, frozen=True):
    """The advice for one family of measurements, or one kind of event.

    `symptom` is one sentence: what is seen, and what it means. `causes` are in order, the most
    likely first. `next` is one command line for Debian and Ubuntu; `shows` says what to look for in
    its output, and what a healthy machine prints. `vendor` is what to send the vendor if the
    trouble stays. `events` are the kinds of events (or codes: `xid.79`) that it is for.

    `next` may have placeholders for the component's location; `next_anywhere` is then its general
    form, for an unknown location or several components. Raises ValueError for another placeholder,
    and if one of the two forms is missing.
    """

    symptom: Line
    causes: Annotated[tuple[LikelyCause, ...], msgspec.Meta(min_length=2, max_length=5)]
    next: Line
    shows: Line
    vendor: Line
    next_anywhere: Line | None = None
    events: tuple[Line, ...] = ()

    def __post_init__(self) -> None:
        used = placeholders(self.next)
        if unknown := used - PLACEHOLDERS:
            known = ", ".join(sorted(PLACEHOLDERS))
            raise ValueError(f"next has {{{min(unknown)}}}; the placeholders are {known}")
        if bool(used) != (self.next_anywhere is not None):
            raise ValueError(
                "next_anywhere is for a command with placeholders, and such a command needs it"
            )

    def command(self, place: Mapping[str, str]) -> str:
        """The next command for this location (values by placeholder).

        It is the command's general form if a value is unknown.
        """
        needed = placeholders(self.next)
        if self.next_anywhere is None or needed <= place.keys():
            return self.next.format_map({name: place[name] for name in needed})
        return self.next_anywhere


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
