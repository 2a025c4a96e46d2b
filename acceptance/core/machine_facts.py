"""Facts of a machine in one run, and the rules by which they are compared with another's.

The accepted run's facts are the baseline; a plan carries them with the rules.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from acceptance.core.parts import Component
from acceptance.core.strict import Strict, Text

# A fact differs, is lower or is higher. A part is missing, added, replaced or moved; "unread":
# parts of its kind could not be listed.
FactChange = Literal["differs", "lower", "higher"]
PartChange = Literal["missing", "added", "replaced", "moved", "unread"]
ChangeMeaning = Literal["fail", "warn", "note", "nothing"]
PartKind = Literal["machine", "cpu", "memory", "gpu", "dimm", "disk", "net"]
_Texts = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]


class ChangeRule(Strict, frozen=True, kw_only=True):
    """The meaning of one kind of change.

    `facts` has the wording of each fact by its name; it is empty if the rule is about parts
    themselves.

    `within` is the share of the earlier value by which a number may be lower or higher without
    meaning anything. `afterwards` is the meaning once an earlier night has reported the change;
    without it the meaning is the same every night. `dated`: later nights say since when all the
    same.

    `given` is a fact of the same part on which these facts depend: where that is another one, or
    unknown, they are not compared.
    """

    of: Annotated[tuple[PartKind, ...], msgspec.Meta(min_length=1)]
    change: FactChange | PartChange
    means: ChangeMeaning
    event: Annotated[str, msgspec.Meta(pattern=r"\Ainventory\.[a-z]+\Z")]
    basis: Text
    facts: dict[Text, Text] = msgspec.field(default_factory=dict)
    within: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    afterwards: Literal["note"] | None = None
    dated: bool = False
    given: Text | None = None

    def __hash__(self) -> int:
        return hash((self.of, self.change, self.event))


class CountedParts(Strict, frozen=True):
    """The disks (by transport) and links (by kind) that are parts of the machine.

    Others come and go.
    """

    disks: _Texts
    links: _Texts
    basis: Text


class ChangeBook(Strict, frozen=True):
    """All rules; the first that fits applies."""

    counted: CountedParts
    change: tuple[ChangeRule, ...]

    def of_part(self, kind: str, change: PartChange) -> ChangeRule | None:
        """The rule for a change of a part; None if that means nothing."""
        return next(
            (
                rule
                for rule in self.change
                if not rule.facts and kind in rule.of and rule.change == change
            ),
            None,
        )

    def of_fact(self, kind: str, fact: str, *changes: FactChange) -> ChangeRule | None:
        """The first rule for one of these changes of a fact; None if the fact is not compared."""
        found = (
            rule
            for rule in self.change
            if kind in rule.of and fact in rule.facts and rule.change in changes
        )
        return next(found, None)


class KnownChange(msgspec.Struct, frozen=True):
    """A change since the baseline that an earlier night has reported.

    `part` is the component in the baseline, ITSELF for the machine. `what` is the fact, or what
    happened to the part ("moved"). `now` is its value on that night, `since` the date of the first
    night that reported it.
    """

    part: Component
    what: str
    now: str
    since: str


class MachineFacts(msgspec.Struct, frozen=True):
    """Facts of a machine in one run, which began at `utc`.

    `parts` are its GPUs, disks, DIMMs and network links, with or without a serial number.
    `identities` are UUIDs and serial numbers by component. `looked` names the kinds of parts that
    could be listed. `facts` are (component, name, text), with component ITSELF for the machine.

    `book` has the rules for comparing another run with it, and `known` the changes that the night
    before reported. A plan has both, a certificate neither.
    """

    run_id: str
    utc: str
    parts: tuple[Component, ...]
    identities: dict[Component, str]
    facts: tuple[tuple[Component, str, str], ...]
    looked: tuple[str, ...]
    book: ChangeBook | None = None
    known: tuple[KnownChange, ...] = ()

    def by_name(self) -> dict[tuple[Component, str], str]:
        """The facts by component and name."""
        return {(component, name): text for component, name, text in self.facts}
